"""Operations of MALT whose ranks are on different hosts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import malt

from .clock import BUSY, idle, loop
from .serve import Timed

UPDATES = 12
"""Scatters in a turn of a stream."""

PAUSE = 0.004
"""Seconds between two looks whether an update has gone."""

LONGEST = 0.05
"""Seconds in which an update has landed, if it lands at all while the receiver is busy."""

TRIES = 9


def stream(v: malt.Vector) -> Timed:
    """Scatters by rank 0, in a mode in which each arrives; the time between two of them at rank 1.

    The first one fills what there is to fill on the way, and is not counted.
    """

    def timed(_: int) -> float | None:
        if malt.rank() == 0:
            for _ in range(UPDATES + 1):
                v.scatter()
                v.gather()  # nobody sends to it: it permits the next scatters
            return None
        v.gather()
        start = time.perf_counter()
        for _ in range(UPDATES):
            v.gather()
        return (time.perf_counter() - start) / UPDATES

    return timed


def cpu(v: malt.Vector) -> Timed:
    """Processor time of both ranks, per byte, of scatters whose receiver sleeps; each has gone before the next."""

    def timed(_: int) -> float:
        malt.barrier()
        used, sent = time.process_time(), _sent()
        if malt.rank() == 0:
            for _ in range(UPDATES):
                v.scatter()
                sent += v.array.nbytes
                while _sent() < sent:
                    time.sleep(PAUSE)
        malt.barrier()
        return float(malt.allreduce(time.process_time() - used, "sum")) / (UPDATES * v.array.nbytes)

    return timed


def _sent() -> int:
    """Return the bytes that have left this host."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[9]) for line in file if line.split()[0] == "eth0:")


def lands(v: malt.Vector, does: str) -> Timed:
    """How soon after a put at rank 0 the update is there for rank 1, which has not called MALT since before the put.

    Each try asks once, at a time of its own: of two tries with different answers the
    time is in between. Rank 1 sleeps until then, or computes without a pause.
    """
    until = {"sleeps": _sleep, "computes": _compute}[does]

    def there(after: float) -> tuple[float, bool]:
        """Return when rank 1 asked, in seconds from the put, and the answer; the later of its times if it was there."""
        put = float(malt.broadcast(time.monotonic() + 0.02))
        if malt.rank() == 0:
            _compute(put)
            put = time.monotonic()
            v.scatter()
        else:
            until(put + after)
        asked = time.monotonic()
        landed = malt.rank() == 1 and bool(v.gather())
        if landed:
            asked = time.monotonic()
        puts, asks = (malt.allgather(t) for t in (put, asked))
        landed = bool(malt.broadcast(landed, root=1))
        while malt.rank() == 1 and not landed and not v.gather():
            pass
        malt.barrier()
        return asks[1] - puts[0], landed

    def timed(_: int) -> float:
        low, high = 0.0, LONGEST
        for _ in range(TRIES):
            asked, landed = there((low + high) / 2)
            if landed:
                high = min(high, asked)
            else:
                low = max(low, asked)
        return high

    return timed


def _sleep(until: float) -> None:
    time.sleep(max(0.0, until - time.monotonic()))


def _compute(until: float) -> None:
    while time.monotonic() < until:
        pass


def step(v: malt.Vector, stopped: bool) -> Timed:
    """A step of rank 0 and its scatter, while rank 1 takes what comes, or is stopped."""
    other = malt.allgather(os.getpid())[1]
    if malt.rank():
        return idle
    a = np.ones((256, 256), np.float32)
    timed = loop(_both(lambda: [a @ a for _ in range(10)], v.scatter))
    if not stopped:
        return timed

    def while_stopped(calls: int) -> float | None:
        os.kill(other, signal.SIGSTOP)
        while Path(f"/proc/{other}/stat").read_text().rpartition(") ")[2][0] != "T":
            os.sched_yield()
        try:
            return timed(calls)
        finally:
            os.kill(other, signal.SIGCONT)

    return while_stopped


def busy(v: malt.Vector, begun: bool) -> Timed:
    """A step that works and averages: one after the other, or both at once."""

    def step() -> None:
        exchanged = v.sync_begin() if begun else None
        time.sleep(BUSY)
        if exchanged is None:
            v.sync()
        else:
            exchanged.wait()

    return loop(step)


def _both(first: Callable[[], object], second: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        first()
        second()

    return call
