"""An sshd on each host, with keys of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from malt._sim import Host, kernel

Ssh = Callable[..., str]
"""Starts an sshd on each host, and returns the command that leads to them."""

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
MaxStartups 100
"""


@contextmanager
def servers(folder: Path) -> Iterator[Ssh]:
    """Give what starts them; they have ended when the block is left. The keys lie in the folder."""
    if SSHD is None:
        pytest.skip("needs sshd: apt install openssh-server")
    if os.geteuid() != 0 or kernel.own_user() is not None:
        pytest.skip("needs root, as which sshd logs in")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for name in ("host", "user", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "config").write_text(CONFIG.format(folder=folder))
    running: list[subprocess.Popen[bytes]] = []

    def start(hosts: Sequence[Host], key: str = "user", known: bool = True) -> str:
        for host in hosts:
            running.append(host.start([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.PIPE))
            stderr = running[-1].stderr
            assert stderr is not None
            assert any(b"Server listening on" in line for line in iter(stderr.readline, b""))
        public = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known").write_text(f"* {public}\n" if known else "")
        return f"ssh -F /dev/null -i {folder}/{key} -o IdentitiesOnly=yes -o UserKnownHostsFile={folder}/known"

    try:
        yield start
    finally:
        for process in running:
            process.kill()
            process.communicate()
