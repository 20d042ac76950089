"""What the tests of launchers share: ``malt`` on a host, and a job that says where its ranks are."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence

import pytest

from malt._sim import Host

JOB = """\
import os, socket, sys, malt
import numpy as np
v = malt.Vector(np.full(3, malt.rank(), np.float64), start="own")
v.sync()
sys.stdout.write(f"{malt.rank()} {malt.local_rank()} {socket.gethostname()} {v.array.tolist()}\\n")  # in one piece
"""


def alone() -> None:
    """Skip outside `make test-net`, and where the test before has left a network."""
    devices = {device for _, device in socket.if_nameindex()}
    if devices != {"lo"}:
        pytest.skip(f"needs a network namespace of its own (`make test-net`), and here are {', '.join(devices)}")


def malt(host: Host, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start a command of MALT on a host."""
    command = [sys.executable, "-m", "malt", *arguments]
    return host.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def means(places: Sequence[str]) -> list[str]:
    """Return what `JOB` prints where its ranks are on these hosts."""
    mean = [sum(range(len(places))) / len(places)] * 3
    return [f"[{rank}] {rank} {list(places[:rank]).count(host)} {host} {mean}" for rank, host in enumerate(places)]
