"""``malt run`` across hosts, by ssh and without, and ``malt sim`` with a script of MALT."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from launching import LONG, MARK, marked
from net.across import JOB, malt, means
from net.ssh import Ssh

from malt._sim import Network

WAITING = """\
import os, signal, sys, time, malt
signal.signal(signal.SIGTERM, signal.SIG_IGN)
malt.barrier()
print("up", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("counts", [(2, 1), (1, 2, 1, 1)])
def test_by_ssh(ssh: Ssh, counts: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(len(counts)) as net:
        named = ",".join(f"{host.name}:{count}" for host, count in zip(net.hosts, counts, strict=True))
        job = malt(net.hosts[0], "run", "-q", "--ssh", ssh(net.hosts), "-H", named, "job.py", cwd=tmp_path)
        out, err = job.communicate(timeout=LONG)
    places = [host for host, count in zip(("h0", "h1", "h2", "h3"), counts, strict=False) for _ in range(count)]
    assert sorted(out.splitlines()) == means(places), err
    assert job.returncode == 0


def test_encrypted_from_a_host_without_ranks(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "hosts").write_text("h1 slots=1\nh2 slots=1\n")
    with Network(3) as net:
        command = ["--encrypt", "--ssh", ssh(net.hosts[1:]), "--hostfile", "hosts", "job.py"]
        out, err = malt(net.hosts[0], "run", "-q", *command, cwd=tmp_path).communicate(timeout=LONG)
    assert sorted(out.splitlines()) == means(["h1", "h2"]), err


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_on_any_host(ssh: Ssh, end: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(WAITING)
    mark = uuid.uuid4().hex
    with Network(2) as net:
        # It begins with MALT_, so all ranks get it; the agents are in the groups of their parents.
        env = {**os.environ, MARK: mark}
        command = ["run", "-q", "--ssh", ssh(net.hosts), "-H", "h0:1,h1:2", "job.py"]
        job = malt(net.hosts[0], *command, cwd=tmp_path, env=env)
        assert job.stdout is not None
        for _ in range(3):
            assert "up" in job.stdout.readline()
        assert len(marked(mark)) > 3
        job.send_signal(end)
        job.communicate(timeout=LONG)
        until = time.monotonic() + LONG
        while (left := marked(mark) + agents()) and time.monotonic() < until:
            time.sleep(0.02)
        assert not left


def test_a_host_that_falls_silent_ends_the_job_and_there_the_ranks(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(WAITING)
    mark = uuid.uuid4().hex
    with Network(3) as net:
        # The first value of an option counts: what takes 20 s otherwise takes 3. And no quarter of an hour there.
        soon = f"{ssh(net.hosts[1:])} -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
        net.hosts[2].start(["sysctl", "-q", "-w", "net.ipv4.tcp_retries2=3"]).wait()
        env = {**os.environ, MARK: mark}
        job = malt(net.hosts[0], "run", "-q", "--ssh", soon, "-H", "h1:1,h2:1", "job.py", cwd=tmp_path, env=env)
        assert job.stdout is not None
        for _ in range(2):
            assert "up" in job.stdout.readline()
        net.apply("cut=unplug:h2")
        _, err = job.communicate(timeout=LONG)
        assert job.returncode == 255
        assert "rank 1 is lost: the connection to host h2 has ended" in err
        until = time.monotonic() + LONG
        while (left := marked(mark) + agents()) and time.monotonic() < until:
            time.sleep(0.02)
        assert not left


def agents() -> list[int]:
    """Return the agents that run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if b"malt._cli.agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    return found


@pytest.mark.parametrize(
    ("options", "hosts", "said"),
    [
        ({}, "h0:1,h1:1", "host h1 cannot be used: it cannot be reached\nIs it on, does its sshd listen"),
        ({}, "h0:1,h7:1", "host h7 cannot be used: there is no host of that name"),
        ({"key": "stranger"}, "h0:1", "host h0 cannot be used: it asks for a password, or does not know your key"),
        ({"known": False}, "h0:1", "host h0 cannot be used: this machine does not know its key"),
    ],
)
def test_a_host_that_cannot_be_used(
    ssh: Ssh, options: dict[str, object], hosts: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text("print('must not run')")
    with Network(2) as net:
        command = ["run", "-q", "--ssh", ssh(net.hosts[:1], **options), "-H", hosts, "job.py"]
        job = malt(net.hosts[0], *command, cwd=tmp_path)
        out, err = job.communicate(timeout=LONG)
    assert job.returncode == 2
    assert said in err
    assert not out


def test_without_ssh(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "token").write_text(uuid.uuid4().hex)
    with Network(2) as net:
        jobs = [
            malt(
                host,
                *("run", "-q", "-n", "1,2", "--node-rank", str(host.number), "--store", "h0:29500"),
                *("--token-file", "token", "job.py"),
                cwd=tmp_path,
            )
            for host in net.hosts[::-1]
        ]
        said = [job.communicate(timeout=LONG) for job in jobs]
    assert sorted(line for out, _ in said for line in out.splitlines()) == means(["h0", "h1", "h1"]), said


def test_a_script_in_a_simulated_network(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "malt", "sim", "--hosts", "2", "-n", "2", "--delay", "1ms", "job.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False)
    assert sorted(done.stdout.splitlines()) == means(["h0", "h0", "h1", "h1"]), done.stderr
    (tmp_path / "job.py").write_text("import malt\nif malt.rank() == 1: raise ValueError('why')\nmalt.barrier()")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 1
    assert "malt sim: rank 1 failed with ValueError" in done.stderr
