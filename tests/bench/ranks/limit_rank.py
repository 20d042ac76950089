"""The limit: the same bytes moved by the same number of processes, in C, with no protocol at all."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
from typing import Any

import numpy as np

from .clock import idle, loop, staged
from .serve import Timed, UnsupportedError, serve

FORK = multiprocessing.get_context("fork")
Address = ctypes.c_void_p


class Limit:
    """One rank. `arrays` are mapped by all ranks, two for each, and so is where they count that they `come`."""

    def __init__(self, rank: int, ranks: int, arrays: list[Any], come: Any, barrier: Any) -> None:
        self.rank, self._ranks = rank, ranks
        self._come, self._met = Address(come.ctypes.data), 0
        self._arrays, self._barrier = arrays, barrier
        self._c = ctypes.CDLL(os.environ["BENCH_LIMIT"])
        self._addresses = (Address * len(arrays))(*(a.ctypes.data for a in arrays))

    def barrier(self) -> None:
        self._barrier.wait()

    def drop(self) -> None:
        pass

    def prepare(self, op: str, size: int, **options: Any) -> Timed:
        count = ctypes.c_int64(max(1, size // 4))
        self._arrays[self.rank][: count.value] = 1
        if op in ("sync", "allreduce"):
            rank, ranks = ctypes.c_int64(self.rank), ctypes.c_int64(self._ranks)
            return loop(lambda: self._c.average(self._addresses, rank, ranks, count))
        if op == "scatter":
            own, other = (Address(self._addresses[i]) for i in (0, 1))
            return loop(lambda: self._c.copy(own, other, count)) if self.rank == 0 else idle
        if op == "gather":
            return staged(lambda: self._write(count), (lambda: self._fold(count)) if self.rank == 0 else None)
        if op == "copy":
            return loop(lambda: self._c.copy(*self._two(), count))
        if op == "read":
            return loop(lambda: self._c.read_all(Address(self._addresses[self.rank]), count))
        raise UnsupportedError(f"{op} moves no bytes to speak of")

    def _fold(self, count: ctypes.c_int64) -> None:
        self._c.fold(Address(self._addresses[0]), self._addresses, ctypes.c_int64(self._ranks), count)

    def _write(self, count: ctypes.c_int64) -> None:
        """Let all but rank 0 write their arrays anew: what is to be folded comes from other cores."""
        if self.rank:
            self._c.copy(*self._two(), count)
        self._met += 1
        self._c.meet(self._come, ctypes.c_int64(self._ranks), ctypes.c_int64(self._met))

    def _two(self) -> tuple[Address, Address]:
        """Arrays of this rank alone: nothing of another core's cache is in them."""
        size = len(self._arrays) // 2
        return Address(self._addresses[self.rank]), Address(self._addresses[size + self.rank])


def main() -> None:
    """Start the other ranks, and be rank 0."""
    ranks, most = int(os.environ["BENCH_SIZE"]), int(os.environ["BENCH_MOST"])
    come = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64)
    arrays = [np.frombuffer(mmap.mmap(-1, most), np.float32) for _ in range(2 * ranks)]
    barrier = FORK.Barrier(ranks)
    others = [
        FORK.Process(target=lambda rank=rank: serve(Limit(rank, ranks, arrays, come, barrier)), daemon=True)
        for rank in range(1, ranks)
    ]
    for process in others:
        process.start()
    serve(Limit(0, ranks, arrays, come, barrier))
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
