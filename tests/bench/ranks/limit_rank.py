"""The limit: the same bytes moved by the same number of processes, in C, with no protocol at all."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
from typing import Any

import numpy as np

from .clock import idle, loop
from .serve import Timed, UnsupportedError, serve

FORK = multiprocessing.get_context("fork")
Address = ctypes.c_void_p


class Limit:
    """One rank. `arrays` are mapped by all ranks, one for each."""

    def __init__(self, rank: int, ranks: int, arrays: list[Any], barrier: Any) -> None:
        self.rank, self._ranks = rank, ranks
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
        own, other = (Address(self._addresses[i]) for i in (0, 1))
        alone = {
            "scatter": lambda: self._c.copy(own, other, count),
            "gather": lambda: self._c.fold(own, self._addresses, ctypes.c_int64(self._ranks), count),
        }
        together = {
            "copy": lambda: self._c.copy(*self._two(), count),
            "read": lambda: self._c.read_all(Address(self._addresses[self.rank]), count),
        }
        if op in together:
            return loop(together[op])
        if op not in alone:
            raise UnsupportedError(f"{op} moves no bytes to speak of")
        return loop(alone[op]) if self.rank == 0 else idle

    def _two(self) -> tuple[Address, Address]:
        """Arrays of this rank alone: nothing of another core's cache is in them."""
        size = len(self._arrays) // 2
        return Address(self._addresses[self.rank]), Address(self._addresses[size + self.rank])


def main() -> None:
    """Start the other ranks, and be rank 0."""
    ranks, most = int(os.environ["BENCH_SIZE"]), int(os.environ["BENCH_MOST"])
    arrays = [np.frombuffer(mmap.mmap(-1, most), np.float32) for _ in range(2 * ranks)]
    barrier = FORK.Barrier(ranks)
    others = [
        FORK.Process(target=lambda rank=rank: serve(Limit(rank, ranks, arrays, barrier)), daemon=True)
        for rank in range(1, ranks)
    ]
    for process in others:
        process.start()
    serve(Limit(0, ranks, arrays, barrier))
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
