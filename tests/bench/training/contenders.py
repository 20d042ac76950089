"""What each way of learning with several processes adds to the serial program.

Each is what its user would write, on one screen; `lines` counts it. All ranks take their part of the data and
do the same steps: that is not here.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import numpy as np

from .tasks import Model, Task

Calls = tuple[Callable[[], object], Callable[[], object]]
"""What to call after so many steps, and what at the end."""


class Serial:
    """The program itself: the others are what they add to it."""

    rank, size = 0, 1

    def barrier(self) -> None:
        """Return when all ranks are here."""

    def begin(self, model: Model, task: Task) -> Calls:
        return self.barrier, self.barrier

    def drop(self) -> None:
        """Give back what `begin` has made."""


class Threads(Serial):
    """One process, whose PyTorch uses several cores."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(int(os.environ["BENCH_THREADS"]))


class Hogwild(Serial):
    """Processes that change one array without locks."""

    def __init__(self) -> None:
        self.size = int(os.environ["BENCH_SIZE"])
        fork = get_context("fork")
        self._memory, self._meet = fork.RawArray("b", 1 << 23), fork.Barrier(self.size)
        self.rank = next((rank for rank in range(1, self.size) if not os.fork()), 0)

    def barrier(self) -> None:
        self._meet.wait()

    def begin(self, model: Model, task: Task) -> Calls:
        shared = np.frombuffer(self._memory, model.flat.dtype, model.flat.size)
        if self.rank == 0:
            shared[:] = model.flat
        self.barrier()
        model.move(shared)
        return (lambda: None), self.barrier


class Mpi(Serial):
    """Local SGD by mpi4py: the mean of all models after so many steps."""

    def __init__(self) -> None:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

        self._all, self._here = MPI.COMM_WORLD, MPI.IN_PLACE
        self.rank, self.size = self._all.rank, self._all.size

    def barrier(self) -> None:
        self._all.Barrier()

    def begin(self, model: Model, task: Task) -> Calls:
        def average() -> None:
            self._all.Allreduce(self._here, model.flat)
            np.divide(model.flat, self.size, out=model.flat)

        return average, average


class Ddp(Serial):
    """PyTorch's DistributedDataParallel over gloo: the mean of all gradients in each step."""

    def __init__(self) -> None:
        from torch import distributed

        self.rank, self.size = int(os.environ["BENCH_RANK"]), int(os.environ["BENCH_SIZE"])
        at = f"file://{os.environ['BENCH_FOLDER']}/gloo"
        distributed.init_process_group("gloo", init_method=at, rank=self.rank, world_size=self.size)

    def barrier(self) -> None:
        from torch import distributed

        distributed.barrier()

    def begin(self, model: Any, task: Task) -> Calls:
        from torch.nn.parallel import DistributedDataParallel

        model.net = DistributedDataParallel(model.net)
        return (lambda: None), (lambda: None)


class Malt(Serial):
    """MALT, with its defaults."""

    graph: Any = "all"
    consistency: Any = "bsp"
    changes = False
    """Whether it folds what ranks have changed, as suits the task."""

    def __init__(self) -> None:
        import malt

        self._malt = malt
        self.rank, self.size = malt.rank(), malt.size()

    def barrier(self) -> None:
        self._malt.barrier()

    def begin(self, model: Model, task: Task) -> Calls:
        fold: Any = task.changes if self.changes else "mean"
        self._v = self._malt.Vector(model.flat, graph=self.graph, consistency=self.consistency, fold=fold)
        model.move(self._v.array)
        return self._v.sync, self._v.allreduce

    def drop(self) -> None:
        self._v.close()


class Halton(Malt):
    """MALT: each rank sends to a few others, and may be two syncs ahead."""

    graph, consistency = "halton", "ssp:2"


class Changes(Malt):
    """MALT: each change of each rank counts once, at most two syncs late."""

    consistency, changes = "ssp:2", True


def lines(program: type[Serial]) -> int:
    """Return how many lines of code a contender adds."""
    found = 0
    for name in ("__init__", "begin"):
        for method in [vars(each)[name] for each in program.__mro__[:-2] if name in vars(each)][:1]:
            [tree] = ast.parse(textwrap.dedent(inspect.getsource(method))).body
            found += len(ast.unparse(tree).splitlines()) - 1
    return found
