"""Run in an environment with Ray and Dask: what ``malt.ray.run`` and ``malt.dask.run`` do on clusters of this machine.

The argument is the engine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import malt

LONG = 60.0


def places(offset: int) -> tuple[int, int, int, list[float]]:
    """Return where a rank is, and what all agree on."""
    v = malt.Vector(np.full(3, malt.rank() + offset, np.float64), start="own")
    v.sync()
    print("hello of", malt.rank())
    return malt.rank(), malt.size(), malt.local_rank(), v.array.tolist()


def fails() -> None:
    if malt.rank() == 1:
        raise KeyError("the reason")
    malt.barrier()


def dies() -> None:
    malt.barrier()
    if malt.rank() == 1:
        os._exit(3)
    time.sleep(LONG)


def leaves() -> None:
    os._exit(0)


def sleeps(file: str) -> None:
    Path(file, str(malt.rank())).write_text(str(os.getpid()))
    time.sleep(10 * LONG)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def raises(kind: type[Exception], said: str) -> Any:
    try:
        yield
    except kind as error:
        notes = "\n".join([str(error), *getattr(error, "__notes__", [])])
        assert said in notes, notes
    else:
        raise AssertionError(f"no {kind.__name__}")


def late(who: int) -> int:
    """End 3 s after the others, as rank `who`."""
    total = malt.allreduce(malt.rank() + 1, "sum")
    if malt.rank() == who:
        time.sleep(3)
    return int(total)


Run = Callable[..., list[Any]]


def results(run: Run) -> None:
    for size in (3, 1):
        mean = [1 + sum(range(size)) / size] * 3
        assert run(places, size, args=(1,)) == [(rank, size, rank, mean) for rank in range(size)]
    assert run(lambda a, b: a + b + malt.rank(), 2, args=(1,), kwargs={"b": 2}) == [3, 4]


def failures(run: Run) -> None:
    with raises(KeyError, "On rank 1:"):
        run(fails, 3)
    with raises(malt.PeerError, "rank 1 ended with exit code 3"):
        run(dies, 3)
    with raises(malt.PeerError, "rank 0 ended without returning"):
        run(leaves, 1)


def refusals(run: Run) -> None:
    for size in (0, 10**10):
        with raises(ValueError, "expected at least one rank; a job has at most 1024"):
            run(places, size)
    with raises(TypeError, "unexpected option tmeout\nDid you mean timeout?"):
        run(places, 1, tmeout=1)


def late_ranks(run: Run, who: int) -> None:
    assert run(late, 2, args=(who,)) == [3, 3]


def timeouts(run: Run) -> None:
    folder = Path("sleeping").resolve()
    folder.mkdir()
    for patience in (5.0, 15.0, 45.0, 135.0):  # a busy machine needs more for a place and a start
        with raises(malt.TimeoutError, "within"):
            run(sleeps, 2, args=(str(folder),), timeout=patience)
        pids = [int(file.read_text()) for file in folder.iterdir()]
        if len(pids) == 2:
            break
    assert len(pids) == 2
    until = time.monotonic() + LONG
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, pids)), "ranks have been left behind"


def examine(run: Run) -> None:
    """Run jobs that go well, and others, side by side, and then one whose ranks have to start within a time."""
    with ThreadPoolExecutor() as pool:
        for done in [
            *(pool.submit(part, run) for part in (results, failures, refusals)),
            *(pool.submit(late_ranks, run, who) for who in range(2)),
        ]:
            done.result(5 * LONG)
    timeouts(run)


def with_ray() -> None:
    import ray

    for left in reversed(range(4)):
        try:
            ray.init(num_cpus=16, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=True)
            break
        except Exception:  # it gives a part of itself 15 s to start, which a busy machine may need
            ray.shutdown()
            if not left:
                raise
    examine(malt.ray.run)
    with raises(malt.TimeoutError, "of 17 actors within"):
        malt.ray.run(places, 17, timeout=1.0)
    ray.shutdown()


def with_dask() -> None:
    from distributed import Client, LocalCluster

    with raises(ValueError, "Make a dask.distributed.Client before it"):
        malt.dask.run(places, 1)
    with LocalCluster(n_workers=2, threads_per_worker=8, dashboard_address=None) as cluster, Client(cluster):
        examine(malt.dask.run)
        with raises(ValueError, "17 ranks need as many threads in Dask's workers\nthese have 16"):
            malt.dask.run(places, 17)


if __name__ == "__main__":
    start = time.monotonic()
    {"ray": with_ray, "dask": with_dask}[sys.argv[1]]()
    print(f"{sys.argv[1]}: ok ({time.monotonic() - start:.1f} s)")
