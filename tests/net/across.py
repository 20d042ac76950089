"""What the tests of launchers share: ``malt`` on a host, and a job that says where its ranks are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

from malt._sim import Host

Ssh = Callable[..., str]
"""Starts an sshd on each host, and returns the command that leads to them."""

JOB = """\
import os, socket, sys, malt
import numpy as np
v = malt.Vector(np.full(3, malt.rank(), np.float64), start="own")
v.sync()
sys.stdout.write(f"{malt.rank()} {malt.local_rank()} {socket.gethostname()} {v.array.tolist()}\\n")  # in one piece
"""


def malt(host: Host, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start a command of MALT on a host."""
    command = [sys.executable, "-m", "malt", *arguments]
    return host.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def means(places: Sequence[str]) -> list[str]:
    """Return what `JOB` prints where its ranks are on these hosts."""
    mean = [sum(range(len(places))) / len(places)] * 3
    return [f"[{rank}] {rank} {list(places[:rank]).count(host)} {host} {mean}" for rank, host in enumerate(places)]
