"""A rank of an MPI that averages in a shared window, as a good user writes it by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

from .clock import average
from .mpi_rank import Mpi
from .serve import Timed, UnsupportedError, serve


class Window(Mpi):
    """One rank. The array of each lies in memory that all map."""

    def prepare(self, op: str, size: int, late: float = 0.0, **_: Any) -> Timed:
        if op not in ("sync", "allreduce", "write-sync", "skew"):
            raise UnsupportedError(f"nobody writes {op} with a window")
        ranks, count = self._all.size, max(1, size // 4)
        self._window = MPI.Win.Allocate_shared(4 * count, 4, comm=self._all)
        self._window.Lock_all()
        arrays = [np.frombuffer(self._window.Shared_query(rank)[0], np.float32) for rank in range(ranks)]
        own = arrays[self.rank]
        own[:] = 1
        first, last = (count * rank // ranks for rank in (self.rank, self.rank + 1))
        call = partial(self._average, [array[first:last] for array in arrays], np.empty(last - first, np.float32))
        return average(op, own, call, late)

    def _average(self, parts: list[Any], mean: Any) -> None:
        """Fold this rank's part of all arrays, and write it to all; no rank begins or leaves before all are here."""
        self._all.Barrier()
        np.add(parts[0], parts[1] if len(parts) > 1 else 0, out=mean)
        for part in parts[2:]:
            mean += part
        mean *= np.float32(1 / len(parts))
        for part in parts:
            part[:] = mean
        self._all.Barrier()


if __name__ == "__main__":
    serve(Window())
