"""A rank of an MPI, through mpi4py."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

from .clock import average, idle, loop
from .serve import Timed, UnsupportedError, serve


class Mpi:
    """One rank."""

    def __init__(self) -> None:
        self._all = MPI.COMM_WORLD
        self.rank = self._all.rank
        self._window: Any = None

    def barrier(self) -> None:
        self._all.Barrier()

    def drop(self) -> None:
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None

    def prepare(self, op: str, size: int, late: float = 0.0, **_: Any) -> Timed:
        a = np.ones(max(1, size // 4), np.float32)
        if op in ("sync", "allreduce", "write-sync", "skew"):
            # The sum: a mean would cost one more pass. It is of zeros, since sums of sums grow without end.
            a[:] = 0
            call = partial(self._all.Allreduce, MPI.IN_PLACE, a)
            return average(op, a, call, late)
        if op == "scatter":
            return self._puts(a)
        if op == "put-seen":
            return self._there_and_back(a)
        raise UnsupportedError(f"MPI has no {op}")

    def _puts(self, a: Any) -> Timed:
        """One Put to each other rank, and the wait until all are there."""
        self._window = MPI.Win.Allocate(a.nbytes, a.itemsize, comm=self._all)
        self._window.Lock_all()
        window, others = self._window, range(1, self._all.size)

        def puts() -> None:
            for other in others:
                window.Put(a, other)
            window.Flush_all()

        return loop(puts) if self.rank == 0 else idle

    def _there_and_back(self, a: Any) -> Timed:
        """Half the round trip of Send and Recv."""
        other, all_ = 1 - self.rank, self._all
        first = self.rank == 0

        def trip() -> None:
            if first:
                all_.Send(a, other)
            all_.Recv(a, other)
            if not first:
                all_.Send(a, other)

        timed = loop(trip)
        return lambda calls: (timed(calls) or 0.0) / 2


if __name__ == "__main__":
    serve(Mpi())
