"""Ranks of one machine that cannot share memory, since a sandbox is around one of them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from launching import LONG
from sandbox import NUMBERS, forbid

from malt._ranks.addresses import listen
from malt._sim import kernel

RANK = """
import malt, numpy as np
v = malt.Vector(np.full(1000, float(malt.rank())), start="own")
v.sync()
malt.barrier()
print(malt.rank(), malt.local_rank(), set(v.array.tolist()), malt.allgather(malt.local_rank()))
"""


def without_memfd() -> None:
    """Forbid this process memory that has no name, as a sandbox may."""
    forbid("memfd_create", errno.EPERM)


def as_in_a_container() -> None:
    """Give this process a user namespace, as containers do that need no root."""
    kernel.become(0, 0)


def mounted(folder: str, flags: int, data: str = "") -> None:
    """Give this process other mounts, with a file system in memory at that folder."""
    if os.geteuid():
        as_in_a_container()
    kernel.unshare(kernel.NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("none", folder, "tmpfs", flags, data)


READ_ONLY = 1


def without_dev_shm() -> None:
    mounted("/dev/shm", READ_ONLY)


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


needs_filters = pytest.mark.skipif(not NUMBERS, reason="the number of a system call")


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
    assert "shared memory does not work here" in rank.stderr
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
    assert "Start them with `malt run -H localhost:4`" in refused.stderr
    assert sorted(run("-H", "localhost:2").stdout.splitlines()) == [f"[{r}] {r} 0 {{0.5}} [0, 0]" for r in range(2)]


def call(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
            **options,  # type: ignore[call-overload]
        )
    except subprocess.SubprocessError:
        pytest.skip("such a sandbox cannot be made here")


def test_a_function_and_its_arguments_need_no_room_on_a_disk(tmp_path: Path) -> None:
    done = call(
        "import malt; print(malt.run(len, 2, args=(bytes(100_000),)))",
        preexec_fn=lambda: mounted(str(tmp_path), 0, "size=4k"),
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (done.stdout, done.stderr) == ("[100000, 100000]\n", "")


def test_a_drawing_for_which_a_disk_has_no_room_is_not_begun(tmp_path: Path) -> None:
    done = call(
        "import os; from malt._cli import main; print(main('graph all -n 64 -o a.svg'.split()), os.listdir())",
        preexec_fn=lambda: (mounted(str(tmp_path), 0, "size=4k"), os.chdir(tmp_path)),
    )
    assert done.stdout == "2 []\n", done.stderr
    assert done.stderr.startswith("malt graph: -o 'a.svg' cannot be written\nNo space left on device\n")
