"""What the processes of ``malt bench --peers`` do: ``python -m malt._cli.measure_peer SYSTEM FOLDER BYTES…``.

Rank 0 writes one line of JSON for each size to standard output.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

ROUND = 0.05
"""Seconds that the calls for one size take, about."""

LEAST, MOST = 5, 20_000
"""Calls for one size."""

Array = np.ndarray[Any, np.dtype[np.float32]]


class _System(Protocol):
    """What a rank is of."""

    rank: int
    size: int
    divides: bool
    """Whether the sum is divided by the number of ranks."""

    def average(self, count: int) -> tuple[Array, Callable[[], Any]]:
        """Return an array of so many elements, and what averages it."""

    def longest(self, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the largest of each element on all ranks."""


class _Malt:
    """A rank of MALT."""

    def __init__(self, _: str) -> None:
        import malt

        malt.init()
        self.rank, self.size, self.divides = malt.rank(), malt.size(), True
        self._malt = malt

    def average(self, count: int) -> tuple[Array, Callable[[], Any]]:
        v = self._malt.Vector(np.zeros(count, np.float32))
        return v.array, v.sync

    def longest(self, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(self._malt.allreduce(times, "max"))


class _Mpi:
    """A rank of an MPI."""

    def __init__(self, _: str) -> None:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

        self._mpi, self._all = MPI, MPI.COMM_WORLD
        self.rank, self.size, self.divides = self._all.rank, self._all.size, False

    def average(self, count: int) -> tuple[Array, Callable[[], Any]]:
        array = np.zeros(count, np.float32)
        return array, lambda: self._all.Allreduce(self._mpi.IN_PLACE, array)

    def longest(self, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._all.Allreduce(self._mpi.IN_PLACE, times, self._mpi.MAX)
        return times


class _Gloo:
    """A rank of torch.distributed."""

    def __init__(self, folder: str) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self.rank, self.size, self.divides = int(os.environ["MALT_RANK"]), int(os.environ["MALT_SIZE"]), False
        dist.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=self.rank, world_size=self.size)
        atexit.register(dist.destroy_process_group)  # else its threads may abort the process at its end
        self._torch, self._dist = torch, dist

    def average(self, count: int) -> tuple[Array, Callable[[], Any]]:
        array = np.zeros(count, np.float32)
        tensor = self._torch.from_numpy(array)
        return array, lambda: self._dist.all_reduce(tensor)

    def longest(self, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._dist.all_reduce(self._torch.from_numpy(times), self._dist.ReduceOp.MAX)
        return times


def _timed(system: _System, bytes_: int) -> float:
    """Return the median time of a call, as the slowest rank sees it, on arrays that were written before it."""
    array, call = system.average(bytes_ // 4)

    def calls(count: int) -> np.ndarray[Any, Any]:
        times = np.empty(count)
        for i in range(count):
            array.fill(system.rank + i % 100 * system.size)
            begun = time.perf_counter()
            call()
            times[i] = time.perf_counter() - begun
        expected = (system.size - 1) / 2 + (count - 1) % 100 * system.size
        expected *= 1 if system.divides else system.size
        if not np.allclose(array, expected):
            raise SystemExit(f"{bytes_} bytes: rank {system.rank} got {array[0]}, expected {expected}")
        return system.longest(times)

    calls(2)  # first touch
    return float(np.median(calls(int(min(max(LEAST, ROUND / calls(LEAST).min()), MOST)))))


def main() -> None:
    """Measure the sizes that are given as arguments."""
    name, folder, *sizes = sys.argv[1:]
    kinds: dict[str, Callable[[str], _System]] = {"malt": _Malt, "mpi4py": _Mpi, "gloo": _Gloo}
    system = kinds[name](folder)
    for bytes_ in map(int, sizes):
        seconds = _timed(system, bytes_)
        if system.rank == 0:
            print(json.dumps({"bytes": bytes_, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
