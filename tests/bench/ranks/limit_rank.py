"""The limit: the same bytes moved by the same number of processes, in C, with no protocol at all."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .clock import idle, skewed
from .serve import Timed, UnsupportedError, serve

FORK = multiprocessing.get_context("fork")
Address = ctypes.c_void_p
Number = ctypes.c_int64


class Limit:
    """One rank. `arrays` are mapped by all ranks, two for each, and so is where they `meet`."""

    def __init__(self, rank: int, ranks: int, arrays: list[Any], meet: Any, barrier: Any) -> None:
        self.rank, self._ranks = rank, Number(ranks)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})  # the steadiest, and never slower
        self._arrays, self._barrier = arrays, barrier
        self._c = ctypes.CDLL(os.environ["BENCH_LIMIT"])
        self._c.gather.restype = ctypes.c_double
        addresses = [array.ctypes.data for array in arrays]
        self._meet = Address(meet.ctypes.data)
        self._all, self._spare = ((Address * ranks)(*half) for half in (addresses[:ranks], addresses[ranks:]))

    def barrier(self) -> None:
        self._barrier.wait()

    def drop(self) -> None:
        pass

    def prepare(self, op: str, size: int, late: float = 0.0, graph: str = "all", **_: Any) -> Timed:
        count, rank = Number(max(1, size // 4)), Number(self.rank)
        for array in self._arrays[self.rank :: len(self._all)]:
            array[: count.value] = 1
        self.barrier()  # what is tried below is not disturbed
        own, other = Address(self._all[self.rank]), Address(self._spare[self.rank])  # no core but this one has them
        nothing = ctypes.c_float(0)
        if op in ("sync", "allreduce", "write-sync"):
            write = Number(op == "write-sync")
            return _loop(partial(self._c.average, self._meet, self._all, rank, self._ranks, count, write, nothing))
        if op == "skew":
            once = partial(self._c.average, self._meet, self._all, rank, self._ranks, count, Number(0), nothing)
            return skewed(self._arrays[self.rank][: count.value], lambda: once(Number(1)), late)
        if op == "write-graph":
            senders = _senders(graph, len(self._all), self.rank)
            slots = (Address * len(senders))(*(self._spare[sender] for sender in senders))
            return _loop(partial(self._c.exchange, own, other, slots, Number(len(senders)), count, nothing))
        if op == "gather":
            return lambda calls: self._gather(count, calls)
        if op == "read":
            return _loop(partial(self._c.read_all, own, count))
        if op == "copy" or (op == "scatter" and self.rank == 0):
            return self._copy(own, other, count)
        if op == "scatter":
            return idle
        raise UnsupportedError(f"{op} moves no bytes to speak of")

    def _copy(self, to: Address, source: Address, count: ctypes.c_int64) -> Timed:
        """Whichever is faster for so many bytes here: a copy into the caches, or past them."""
        ways = [_loop(partial(self._c.copy, to, source, count, Number(past))) for past in (0, 1)]
        tried = [[_settled(way) for way in ways] for _ in range(TRIES)]
        best = [min(times) for times in zip(*tried, strict=True)]
        return ways[best.index(min(best))]

    def _gather(self, count: ctypes.c_int64, calls: int) -> float | None:
        taken = self._c.gather(self._meet, self._all, self._spare, Number(self.rank), self._ranks, count, Number(calls))
        return float(taken) if self.rank == 0 else None


PLACE = 64
"""Bytes for each rank where they meet: a cache line."""

TRIES = 5
"""How often each way to copy is tried, in turns; the fastest tells."""


def _senders(graph: str, ranks: int, rank: int) -> list[int]:
    import malt

    return malt.Graph(graph, ranks).senders(rank)


def _loop(function: Callable[[ctypes.c_int64], Any]) -> Callable[[int], float]:
    """Return what takes the time of a function that does itself so many calls."""

    def timed(calls: int) -> float:
        start = time.perf_counter()
        function(Number(calls))
        return (time.perf_counter() - start) / calls

    return timed


def _settled(way: Callable[[int], float]) -> float:
    """Return the time of a call after one that has left the arrays in the caches, or not, as this way does."""
    way(1)
    return way(2)


def main() -> None:
    """Start the other ranks, and be rank 0."""
    ranks, most = int(os.environ["BENCH_SIZE"]), int(os.environ["BENCH_MOST"])
    meet = np.frombuffer(mmap.mmap(-1, PLACE * ranks), np.int64)
    arrays = [np.frombuffer(mmap.mmap(-1, most), np.float32) for _ in range(2 * ranks)]
    barrier = FORK.Barrier(ranks)
    others = [
        FORK.Process(target=lambda rank=rank: serve(Limit(rank, ranks, arrays, meet, barrier)), daemon=True)
        for rank in range(1, ranks)
    ]
    for process in others:
        process.start()
    serve(Limit(0, ranks, arrays, meet, barrier))
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
