"""What a person does by hand: multiprocessing, one shared array, a lock and a barrier."""

from __future__ import annotations

import multiprocessing
import os
from functools import partial
from typing import Any

import numpy as np

from .clock import average, idle, loop
from .serve import Timed, UnsupportedError, serve

FORK = multiprocessing.get_context("fork")


class Hand:
    """One rank. All arrays are there before the processes are, so one serves all sizes up to `most`."""

    def __init__(self, rank: int, boxes: list[Any], lock: Any, barrier: Any) -> None:
        self.rank = rank
        self._boxes = [np.frombuffer(box, np.float32) for box in boxes]
        self._lock, self._barrier = lock, barrier

    def barrier(self) -> None:
        self._barrier.wait()

    def drop(self) -> None:
        pass

    def prepare(self, op: str, size: int, late: float = 0.0, **_: Any) -> Timed:
        count = max(1, size // 4)
        own = np.zeros(count, np.float32)
        if op in ("sync", "allreduce", "write-sync", "skew"):
            call = partial(self._average, own, self._boxes[0][:count])
            return average(op, own, call, late)
        if op == "scatter":
            return loop(partial(self._scatter, own)) if self.rank == 0 else idle
        raise UnsupportedError(f"nobody writes {op} by hand")

    def _average(self, own: Any, total: Any) -> None:
        if self.rank == 0:
            total[:] = 0
        self._barrier.wait()
        with self._lock:
            total += own
        self._barrier.wait()
        np.multiply(total, np.float32(1 / len(self._boxes)), out=own)
        self._barrier.wait()

    def _scatter(self, own: Any) -> None:
        for box in self._boxes[1:]:
            with self._lock:
                box[: own.size] = own


def main() -> None:
    """Start the other ranks, and be rank 0."""
    size, most = int(os.environ["BENCH_SIZE"]), int(os.environ["BENCH_MOST"])
    boxes = [FORK.RawArray("f", most // 4) for _ in range(size)]
    lock, barrier = FORK.Lock(), FORK.Barrier(size)
    ranks = [
        FORK.Process(target=lambda rank=rank: serve(Hand(rank, boxes, lock, barrier)), daemon=True)
        for rank in range(1, size)
    ]
    for process in ranks:
        process.start()
    serve(Hand(0, boxes, lock, barrier))
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
