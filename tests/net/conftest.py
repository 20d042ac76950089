"""What the tests of simulated networks share."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from net.across import Ssh

from malt._sim import Host, kernel

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

CONFIG = """\
Port 22
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
"""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell, and then in all they start
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _alone() -> None:
    """Skip outside `make test-net`, and fail where the test before has left a network."""
    devices = {device for _, device in socket.if_nameindex()}
    if devices != {"lo"}:
        pytest.skip(f"needs a network namespace of its own (`make test-net`), and here are {', '.join(devices)}")


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    """Fail a test that hangs, whatever it waits for."""

    def late(*_: object) -> NoReturn:
        raise TimeoutError("the test has taken more than a minute")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[Ssh]:
    """Start an sshd on each host, with keys of their own; the value makes the ssh command for some hosts."""
    if SSHD is None:
        pytest.skip("needs sshd: apt install openssh-server")
    if os.geteuid() != 0 or kernel.own_user() is not None:
        pytest.skip("needs root, as which sshd logs in")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for name in ("host", "user", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "config").write_text(CONFIG.format(folder=tmp_path))
    running: list[subprocess.Popen[bytes]] = []

    def start(hosts: Sequence[Host], key: str = "user", known: bool = True) -> str:
        for host in hosts:
            running.append(host.start([SSHD, "-D", "-e", "-f", str(tmp_path / "config")], stderr=subprocess.PIPE))
            stderr = running[-1].stderr
            assert stderr is not None
            assert any(b"Server listening on" in line for line in iter(stderr.readline, b""))
        public = " ".join((tmp_path / "host.pub").read_text().split()[:2])
        (tmp_path / "known").write_text(f"* {public}\n" if known else "")
        return f"ssh -F /dev/null -i {tmp_path}/{key} -o IdentitiesOnly=yes -o UserKnownHostsFile={tmp_path}/known"

    yield start
    for process in running:
        process.kill()
        process.communicate()
