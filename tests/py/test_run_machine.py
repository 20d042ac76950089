"""Cores and their shares; what the launcher asks the kernel."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from malt._ranks import machine, processes
from malt._ranks.launch import _channel as channel
from malt._ranks.report import Reporter


def group(folder: Path, files: dict[str, str], lines: str) -> float | None:
    for name, text in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "cgroup").write_text(lines)
    return machine.quota(str(folder / "cgroup"), str(folder / "fs"))


@pytest.mark.parametrize(
    ("files", "lines", "cores"),
    [
        ({"a/b/cpu.max": "150000 100000\n"}, "0::/a/b\n", 1.5),
        ({"a/b/cpu.max": "max 100000\n"}, "0::/a/b\n", None),
        ({"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, "0::/a/b\n", 2.0),
        ({"cpu.max": "50000 100000\n"}, "0::/of/the/host\n", 0.5),
        ({"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/a\n", 3.0),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, "4:cpuacct,cpu:/host\n", 3.0),
        ({"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, "4:cpu:/a\n", None),
        ({}, "2:memory:/a\n0::/\n", None),
        ({}, "", None),
    ],
)
def test_quota_of_control_groups(tmp_path: Path, files: dict[str, str], lines: str, cores: float | None) -> None:
    assert group(tmp_path, files, lines) == cores


def test_cores_respect_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for quota, cores in ((None, 8), (3.7, 3), (0.5, 1), (64.0, 8)):
        monkeypatch.setattr(machine, "quota", lambda quota=quota: quota)
        assert machine.cores() == cores


def test_shares_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 8)
    assert set(machine.threads(3, {}).values()) == {"2"}
    assert set(machine.threads(16, {}).values()) == {"1"}
    assert machine.threads(2, {"OMP_NUM_THREADS": "5"}) == {}
    assert "MKL_NUM_THREADS" not in machine.threads(2, {"MKL_NUM_THREADS": "5"})


def threads_of(folder: Path, siblings: dict[int, str]) -> str:
    for thread, text in siblings.items():
        path = folder / f"cpu{thread}" / "topology"
        path.mkdir(parents=True)
        (path / "thread_siblings_list").write_text(text + "\n")
    return str(folder)


@pytest.mark.parametrize(
    ("size", "shares"),
    [
        (1, [[0, 4, 1, 5, 2, 6, 3, 7]]),
        (2, [[0, 4, 1, 5], [2, 6, 3, 7]]),
        (3, [[0, 4], [1, 5], [2, 6]]),
        (4, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (5, [[0], [1], [2], [3], [4]]),
        (8, [[0], [1], [2], [3], [4], [5], [6], [7]]),
        (9, []),
    ],
)
def test_shares_of_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, shares: list[list[int]]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert machine.shares(size, threads_of(tmp_path, {i: f"{i % 4},{i % 4 + 4}" for i in range(8)})) == shares


def test_shares_where_nothing_is_known_of_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 5})
    assert machine.shares(2, str(tmp_path)) == [[1], [3]]


def test_binding_is_asked_for() -> None:
    assert machine.binds({"MALT_BIND": "1"})
    assert not any(machine.binds(env) for env in ({}, {"MALT_BIND": "0"}, {"MALT_BIND": "false"}, {"MALT_BIND": ""}))
    assert machine.bound(2, {}) == machine.bound(2, {"MALT_BIND": "0"}) == [[], []]
    assert machine.bound(1, {"MALT_BIND": "1"}) == machine.shares(1)
    assert machine.crowding(10_000, {"MALT_BIND": "1"})[0].startswith("MALT_BIND has no effect: ")


@pytest.mark.parametrize("pidfd", [True, False])
def test_watch_and_peek(monkeypatch: pytest.MonkeyPatch, pidfd: bool) -> None:
    if not pidfd:  # as on Linux before 5.3
        monkeypatch.delattr(os, "pidfd_open")
    child = subprocess.Popen(["sleep", "1000"])
    fd = processes.watch(child.pid)
    try:
        assert processes.peek(child.pid) is None
        assert not select.select([fd], [], [], 0)[0]
        child.kill()
        assert select.select([fd], [], [], 30)[0]
        assert processes.peek(child.pid) == -signal.SIGKILL
        assert processes.peek(child.pid) == -signal.SIGKILL, "it must stay unreaped"
    finally:
        os.close(fd)
        child.wait()
    with pytest.raises(ChildProcessError):
        processes.peek(child.pid)


def test_members_of_groups() -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 1000 & echo ; wait"], start_new_session=True, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = processes.members([child.pid])
        assert set(found.values()) == {child.pid}
        assert len(found) == 2
        assert processes.members([]) == {}
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def test_signal_names() -> None:
    assert processes.signal_name(signal.SIGSEGV) == "SIGSEGV"
    assert processes.signal_name(40) == "signal 40"


def test_reports_go_to_the_pipe_of_the_launcher_and_nowhere_else(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    where = channel(writer)
    Reporter(where).failed(ValueError("x"))
    assert b'"failed": "ValueError", "peer": null' in os.read(reader, 4096)
    # A number that has come to mean something else is not written to.
    with open(tmp_path / "file", "w+") as file:
        os.dup2(file.fileno(), writer)
        Reporter(where).failed(ValueError("x"))
        os.close(writer)
        assert file.read() == ""
    os.close(reader)
    for nonsense in (None, "", "x", "1:2:3", "99999:1"):
        Reporter(nonsense).finish()
