"""Ranks of one machine that cannot share memory, since a sandbox is around one of them."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from launching import LONG

from malt._addresses import listen
from malt._sim import kernel

MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}

_prctl = ctypes.CDLL(None, use_errno=True).prctl

RANK = """
import malt, numpy as np
v = malt.Vector(np.full(1000, float(malt.rank())), start="own")
v.sync()
malt.barrier()
print(malt.rank(), malt.local_rank(), set(v.array.tolist()), malt.allgather(malt.local_rank()))
"""


class _Filter(ctypes.Structure):  # linux/filter.h
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.POINTER(_Filter))]


def without_memfd() -> None:
    """Forbid this process memory that has no name, as a sandbox may."""
    number = MEMFD_CREATE[platform.machine()]
    load, equal, answer = 0x20, 0x15, 0x06
    refused, allowed = 0x00050000 | 1, 0x7FFF0000  # EPERM
    steps = (_Filter * 4)((load, 0, 0, 0), (equal, 0, 1, number), (answer, 0, 0, refused), (answer, 0, 0, allowed))
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    if _prctl(no_new_privileges, 1, 0, 0, 0) or _prctl(seccomp, by_filter, ctypes.byref(_Program(4, steps))):
        raise OSError(ctypes.get_errno(), "seccomp")


def as_in_a_container() -> None:
    """Give this process a user namespace, as containers do that need no root."""
    kernel.become(0, 0)


def without_dev_shm() -> None:
    """Give this process other mounts, among which nothing can be written to /dev/shm."""
    if os.geteuid():
        as_in_a_container()
    kernel.unshare(kernel.NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    read_only = 1
    kernel.mount("none", "/dev/shm", "tmpfs", read_only)


def job(around: dict[int, Callable[[], None]], size: int, **env: str) -> list[subprocess.CompletedProcess[str]]:
    """Run a job whose ranks meet over loopback, some of them in a sandbox."""
    (listening, *_), _ = listen({"MALT_INTERFACE": "127.0.0.1"})
    store = f"127.0.0.1:{listening.getsockname()[1]}"
    common = {**os.environ, "MALT_SIZE": str(size), "MALT_STORE": store, "MALT_TOKEN": uuid.uuid4().hex, **env}
    with listening:
        ranks = []
        for rank in range(size):
            own = {"MALT_RANK": str(rank), **({"MALT_STORE_FD": str(listening.fileno())} if rank == 0 else {})}
            try:
                process = subprocess.Popen(
                    [sys.executable, "-c", RANK],
                    env={**common, **own},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    pass_fds=[listening.fileno()] if rank == 0 else [],
                    preexec_fn=around.get(rank),
                )
            except subprocess.SubprocessError:
                for started in ranks:
                    started.kill()
                    started.communicate()
                pytest.skip("such a sandbox cannot be made here")
            ranks.append(process)
    done = []
    for process in ranks:
        out, err = process.communicate(timeout=LONG)
        done.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return done


needs_filters = pytest.mark.skipif(platform.machine() not in MEMFD_CREATE, reason="the number of a system call")


@needs_filters
@pytest.mark.parametrize(
    ("sandbox", "local"),
    [
        ({1: without_memfd}, [0, 0, 1]),
        ({0: without_memfd, 2: without_memfd}, [0, 0, 0]),
        ({1: as_in_a_container, 2: without_dev_shm}, [0, 1, 2]),
    ],
)
def test_memory_is_shared_where_that_is_permitted(sandbox: dict[int, Callable[[], None]], local: list[int]) -> None:
    said = [rank.stdout or rank.stderr for rank in job(sandbox, 3)]
    assert said == [f"{rank} {local[rank]} {{1.0}} {local}\n" for rank in range(3)]


@needs_filters
def test_shm_that_was_asked_for_says_what_is_forbidden() -> None:
    (rank,) = job({0: without_memfd}, 1, MALT_TRANSPORT="shm")
    assert "shared memory cannot be had here" in rank.stderr
    assert "memfd_create" in rank.stderr


@needs_filters
def test_malt_run_on_one_machine_says_how_to_do_without(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(RANK)

    def run(*ranks: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "malt", "run", "-q", *ranks, "rank.py"]
        return subprocess.run(
            command, cwd=tmp_path, preexec_fn=without_memfd, capture_output=True, text=True, timeout=LONG, check=False
        )

    refused = run("-n", "2")
    assert refused.returncode == 1
    assert "memfd_create" in refused.stderr
    assert "Start them by `malt run -H localhost:4`" in refused.stderr
    assert sorted(run("-H", "localhost:2").stdout.splitlines()) == [f"[{r}] {r} 0 {{0.5}} [0, 0]" for r in range(2)]
