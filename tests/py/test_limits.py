"""Limits of the system: an error names the limit, whatever is too small for it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys

import jobs
import pytest
from sandbox import NUMBERS, forbid


@pytest.mark.parametrize("mebibytes", [600, 1200, 1800])
@pytest.mark.parametrize("command", [["-c", "import malt; malt.init()"], ["-m", "malt", "doctor"]])
def test_too_few_addresses_for_the_library(mebibytes: int, command: list[str]) -> None:
    limit = mebibytes << 20
    done = subprocess.run(
        [sys.executable, *command],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())  # lines are wrapped
    assert "runtime" not in said, said
    assert f"of the {mebibytes / 1024:.2f} GiB of address space of this process are used" in said
    assert "ulimit -v unlimited" in said
    assert done.returncode == 1


# Leaves room for so many mappings of this rank, of which a vector takes four.
FULL = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
def fill(room):
    most = int(open("/proc/sys/vm/max_map_count").read())
    n = most - room - sum(1 for _ in open("/proc/self/maps"))
    base = libc.mmap(None, 4096 * (n + 2), 0, 0x22, -1, 0)
    for i in range(0, n, 2):              # neighbours that differ stay apart
        libc.mmap(base + 4096 * i, 4096, 1, 0x32, -1, 0)
"""


def test_too_many_mappings_are_called_so_on_all_ranks() -> None:
    outputs = jobs.run(
        2,
        FULL
        + """
malt.barrier()
if r == 0:
    fill(100)
malt.barrier()
kept = []
try:
    while len(kept) < 60:
        kept.append(malt.Vector(3))
except malt.OutOfMemoryError as e:
    print(e)
malt.barrier()
os._exit(0)
""",
    )
    for said in outputs:
        assert "memory mappings" in said
        assert "vm.max_map_count" in said
        assert "ulimit" not in said


def without_threads() -> None:
    for call in ("clone", "clone3"):
        forbid(call, errno.EAGAIN)


@pytest.mark.skipif(not NUMBERS, reason="the numbers of system calls")
def test_no_more_threads() -> None:
    """As under `ulimit -u` and pids.max: Go's runtime aborts, and would say no more."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", "import malt; malt.init()"],
        preexec_fn=without_threads,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    what, why, advice = done.stderr.splitlines()
    assert what == "malt: the system gives this process no more threads, which MALT needs"
    assert "`ulimit -u`" in why
    assert "pids.max" in why
    assert advice.startswith("Raise the limit, or start fewer ranks.")
    assert done.returncode == 1
