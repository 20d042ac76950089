"""A rank of torch.distributed with gloo."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from .clock import BUSY, loop
from .serve import Timed, UnsupportedError, serve


class Gloo:
    """One rank."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.rank, size = int(os.environ["BENCH_RANK"]), int(os.environ["BENCH_SIZE"])
        dist.init_process_group(
            "gloo", init_method=f"file://{os.environ['BENCH_FOLDER']}/gloo", rank=self.rank, world_size=size
        )

    def barrier(self) -> None:
        dist.barrier()

    def drop(self) -> None:
        pass

    def prepare(self, op: str, size: int, **_: Any) -> Timed:
        a = torch.zeros(max(1, size // 4))
        if op == "sync":
            return loop(partial(dist.all_reduce, a))
        if op == "busy":
            return loop(partial(self._busy, a))
        if op == "put-seen":
            return self._there_and_back(a)
        raise UnsupportedError(f"gloo has no {op}")

    def _busy(self, a: torch.Tensor) -> None:
        going = dist.all_reduce(a, async_op=True)
        time.sleep(BUSY)
        going.wait()

    def _there_and_back(self, a: torch.Tensor) -> Timed:
        other, first = 1 - self.rank, self.rank == 0

        def trip() -> None:
            if first:
                dist.send(a, other)
            dist.recv(a, other)
            if not first:
                dist.send(a, other)

        timed = loop(trip)
        return lambda calls: (timed(calls) or 0.0) / 2


if __name__ == "__main__":
    serve(Gloo())
