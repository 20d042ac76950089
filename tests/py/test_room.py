"""More ranks than there is room for are refused, before the first of them is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

import malt
from malt._ranks import machine, room

HUGE = "99999999999"

# Should a check be missing, what the command does ends there, and not with the machine.
LIMITED = "ulimit -v 4000000; exec "


def shell(command: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command with $0 as this Python, under a limit of memory."""
    return subprocess.run(
        ["sh", "-c", LIMITED + command, sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (f"run -n {HUGE}", f"'{HUGE}' is not a number of ranks\nexpected 1 to 1024"),
        ("run -n 5000", "expected 1 to 1024"),
        (f"run -n 1 --nodes {HUGE} --node-rank 0 --store a:1", "is not a number of machines\nexpected 1 to 1024"),
        ("run -n 600 --nodes 2 --node-rank 0 --store a:1", "1200 ranks on 2 machines are too many"),
        (f"run -H localhost:{HUGE}", f"{HUGE} ranks are too many\na job has at most 1024"),
        ("run -H localhost:600,a:600", "1200 ranks are too many\na job has at most 1024"),
        ("run -np 2", "-np is -n here\nexpected a number after -n, such as -n 4"),
        ("run -n 3 -H localhost:2", "-n 3, but the hosts get 2 ranks\nLeave -n out"),
        (f"sim --hosts {HUGE}", "is not a number of hosts"),
        (f"sim --hosts 2 -n {HUGE}", "is not a number of ranks\nexpected 1 to 1024"),
        ("sim --hosts 20 -n 1000", "20000 ranks are too many\na job has at most 1024"),
        (f"graph ring -n {HUGE}", "is not a number of ranks\nexpected 1 to 32768"),
        (f"bench -n {HUGE}", "is not a number of ranks that can exchange something\nexpected 2 to 1024"),
    ],
)
def test_slips_of_the_keyboard(arguments: str, said: str, tmp_path: Path) -> None:
    program = "" if arguments.startswith(("graph", "bench")) else "job.py"
    (tmp_path / "job.py").write_text("open('started', 'w')")
    done = shell(f'"$0" -m malt {arguments} {program}', cwd=tmp_path, env={**os.environ, "MALT_TOKEN": "0" * 16})
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("hosts", ["-n 100", "-H localhost:100"])
def test_open_files(hosts: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("open('started', 'w')")
    done = shell(f'sh -c \'ulimit -n 64; exec "$0" -m malt run {hosts} job.py\' "$0"', cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "there is no room for 100 ranks, and none was started" in done.stderr
    assert "each takes 4 open files of the launcher, and ulimit -n is 64" in done.stderr
    assert "start at most 1" in done.stderr
    assert "or have the hard limit raised (nofile" in done.stderr  # `ulimit -n 64` has lowered that, too
    assert not (tmp_path / "started").exists()


def test_open_files_of_a_function() -> None:
    code = "import malt, resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (64, 64))\nmalt.run(print, 100)"
    done = shell('"$0" -c "$1"', code)
    assert "HostError: malt: there is no room for 100 ranks, and none was started" in done.stderr


@pytest.mark.parametrize("n", [10**10, 1025])
def test_a_function_on_too_many(n: int) -> None:
    with pytest.raises(ValueError, match=f"n={n}\nexpected at least one rank; a job has at most 1024"):
        malt.run(print, n)


def test_as_many_as_fit_are_not_refused() -> None:
    """What is refused at 64 descriptors is right: with one rank fewer all can be started."""
    done = shell('sh -c \'ulimit -n 64; exec "$0" -m malt run -q -n 100 true\' "$0"')
    possible = done.stderr.split("start at most ")[1].split(",")[0]
    done = shell(f'sh -c \'ulimit -n 64; exec "$0" -m malt run -q -n {possible} true\' "$0"')
    assert (done.returncode, done.stderr) == (0, "")


def group(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """Let this process be in a control group with these files."""
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    monkeypatch.setattr(machine, "groups", lambda _: iter([str(folder)]))


def test_memory_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path, monkeypatch, memory_max=f"{200 << 20}\n", memory_current=f"{40 << 20}\n")
    found = room.shortage(11)
    assert found is not None
    assert (found.possible, found.limit) == (10, "0.16 GiB are free")
    assert room.shortage(10) is None
    assert room.shortage(100, python=False) is None
    with pytest.raises(malt.OutOfMemoryError, match="no room for 11 ranks"):
        room.see_room(11)


@pytest.mark.parametrize(
    ("most", "now", "total"),
    [("memory_max", "memory_current", ""), ("memory_limit_in_bytes", "memory_usage_in_bytes", "total_")],
)
def test_files_that_the_kernel_keeps_are_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str, now: str, total: str
) -> None:
    stat = f"anon {10 << 20}\n{total}active_file {60 << 20}\n{total}inactive_file {30 << 20}\n"
    group(tmp_path, monkeypatch, **{most: f"{100 << 20}\n", now: f"{100 << 20}\n", "memory_stat": stat})
    assert room.free_memory() == 90 << 20


def test_threads_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path, monkeypatch, pids_max="100\n", pids_current="40\n")
    found = room.shortage(11)
    assert found is not None
    assert (found.possible, found.limit) == (10, "the control group may have 100 threads, of which 60 are left")


@pytest.mark.parametrize("name", ["memory_events", "memory_oom_control"])
@pytest.mark.parametrize("kills", [0, 1])
def test_a_rank_that_the_kernel_killed_for_lack_of_memory(tmp_path: Path, name: str, kills: int) -> None:
    """What the kernel counts is written by the rank here."""
    file = tmp_path / name.replace("_", ".", 1)
    file.write_text("oom 0\noom_kill 3\n")
    rank = tmp_path / "rank.py"
    rank.write_text(f"import os\nopen({str(file)!r}, 'w').write('oom_kill {3 + kills}')\nos.kill(os.getpid(), 9)\n")
    code = (
        "import sys; from malt._ranks import machine; from malt._cli import main\n"
        "machine.groups = lambda *_: iter([sys.argv[1]]); sys.exit(main(['run', '-q', '-n', '1', sys.argv[2]]))"
    )
    words = [sys.executable, "-c", code, str(tmp_path), str(rank)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 137
    assert ("by the kernel: the control group is out of memory" in done.stderr) == bool(kills), done.stderr
    assert ("by somebody" in done.stderr) != bool(kills), done.stderr


def test_no_limit_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path, monkeypatch, memory_max="max\n", memory_current="1\n", pids_max="max\n")
    assert room.shortage(1) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_processes_of_a_user() -> None:
    code = (
        "import os, resource as r; from malt._ranks import room\n"
        "os.setuid(61234); r.setrlimit(r.RLIMIT_NPROC, (60, 60)); print(room.shortage(100).lines())"
    )
    done = shell('"$0" -c "$1"', code)
    assert "each takes 6 threads, and ulimit -u is 60, of which 59 are left" in done.stdout, done.stderr
