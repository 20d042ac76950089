"""One process of a contender."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from ..ranks.serve import Timed, Times, serve
from . import contenders
from .tasks import TASKS, Model, Task

COPIES = 60
"""Of the model, in a run, at most."""


class Rank:
    """Learns its part of a task against the clock; rank 0 judges the copies of its model afterwards.

    The clock runs from when all ranks are ready until the last exchange is over. It contains the
    copies, which rank 0 takes after about as many steps whoever runs, and nothing else but steps and exchanges.
    """

    def __init__(self, own: contenders.Serial) -> None:
        self.rank, self._own = own.rank, own
        self.barrier = own.barrier
        self.drop = own.drop

    def prepare(self, op: str, size: int, **how: Any) -> Timed:
        task = TASKS[op]
        data = task.part(how["seed"], self.rank, self._own.size, how["rows"])
        model = task.model(data, how["rate"])
        calls = self._own.begin(model, task)
        return lambda _: self._learn(task, model, len(data[-1]), how["every"], *calls)

    def _learn(self, task: Task, model: Model, count: int, every: int, exchange: Any, end: Any) -> Times:
        steps, each = round(task.passes * count / task.batch), count // task.batch
        gap = max(1, steps // COPIES)
        copies = np.ones((1 + steps // gap, model.flat.size), model.flat.dtype)  # ones: the memory is there already
        seconds: list[float] = []
        due = gap
        self.barrier()
        start = time.perf_counter()
        for step in range(steps):
            at = step % each * task.batch
            model.step(slice(at, at + task.batch))
            if (step + 1) % every:
                continue
            exchange()
            if self.rank == 0 and step + 1 >= due:
                copies[len(seconds)] = model.flat
                seconds.append(time.perf_counter() - start)
                due = step + 1 + gap
        end()
        seconds.append(time.perf_counter() - start)
        copies[len(seconds) - 1] = model.flat
        if self.rank:
            return []
        test = task.test()
        return [(at, model.judge(copy, test)) for at, copy in zip(seconds, copies, strict=False)]


if __name__ == "__main__":
    sys.path += os.environ["BENCH_PATH"].split(os.pathsep)
    serve(Rank(getattr(contenders, os.environ["BENCH_CONTENDER"])()))
