"""Who takes part, and how the ranks of each are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .environments import environment, has_torch, limit_library

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

Command = list[str]
Environment = dict[str, str]


@dataclass(frozen=True)
class System:
    """A contender, in one of its settings."""

    name: str
    start: Callable[[int], list[tuple[Command, Environment]]]
    """Commands, each with what it adds to the environment, for so many ranks."""
    ops: frozenset[str] = frozenset()
    """Operations that it has; none means all."""
    most: int = 32
    """Ranks at which it still ends in reasonable time."""
    bound: bool = False
    """Needs a core for each rank."""
    names: str = ""
    """What its shared memory is called, where one that is killed leaves it behind."""

    def has(self, op: str) -> bool:
        """Whether it takes part in rows of that operation."""
        return not self.ops or op in self.ops


AVERAGES = frozenset({"sync", "allreduce", "write-sync"})
MPI_OPS = AVERAGES | {"scatter", "put-seen"}


def _rank(name: str) -> Command:
    return [sys.executable, "-m", f"bench.ranks.{name}_rank"]


MORTAL_OPS = AVERAGES | {"scatter", "gather", "sync-graph"}
"""What is compared with and without ``on_death=continue``."""


def on_death(what: str) -> Callable[[int], list[tuple[Command, Environment]]]:
    """Return how to start MALT's ranks, which then stop at a death, or continue."""

    def start(ranks: int) -> list[tuple[Command, Environment]]:
        from malt._ranks.launch import job_environment

        job = job_environment(ranks) | {"MALT_ON_DEATH": what}
        return [(_rank("malt"), {**job, "MALT_RANK": str(r)}) for r in range(ranks)]

    return start


_malt = on_death("stop")


def _openmpi(*settings: str) -> Callable[[int], list[tuple[Command, Environment]]]:
    def start(ranks: int) -> list[tuple[Command, Environment]]:
        folder = environment("openmpi")
        command = [str(folder / "bin/mpirun"), "--oversubscribe", *settings, "-n", str(ranks), *_python(folder)]
        return [(command, AS_ROOT)]

    return start


def _mpich(ranks: int) -> list[tuple[Command, Environment]]:
    folder = environment("mpich")
    return [([str(folder / "bin/mpiexec"), "-n", str(ranks), *_python(folder)], {})]


def _python(folder: Path) -> Command:
    return [str(folder / "bin/python"), "-m", "bench.ranks.mpi_rank"]


def _gloo(ranks: int) -> list[tuple[Command, Environment]]:
    return [(_rank("gloo"), {"BENCH_RANK": str(r)}) for r in range(ranks)]


def _hand(_: int) -> list[tuple[Command, Environment]]:
    return [(_rank("hand"), {})]


def _limit(_: int) -> list[tuple[Command, Environment]]:
    return [(_rank("limit"), {"BENCH_LIMIT": str(limit_library())})]


def alone() -> list[System]:
    """MALT, and the limit."""
    moved = AVERAGES | {"scatter", "gather", "copy", "read"}
    own = frozenset(
        {
            "gather-own-fold",
            "numpy-fold",
            "gather-idle",
            "sync-idle",
            "sync-graph",
            "put-seen",
            "stopped",
            "sparse",
            "memory",
        }
    )
    return [System("malt", _malt, AVERAGES | {"scatter", "gather"} | own), System("limit", _limit, frozenset(moved))]


def mortal() -> list[System]:
    """MALT as it is, and with ``on_death=continue``, which stands in the place of a peer."""
    return [System("malt", _malt, MORTAL_OPS), System("continue", on_death("continue"), MORTAL_OPS)]


def peers() -> list[System]:
    """The others, each in the settings that could be its best: the table takes the best."""
    plain = ("--mca", "pml", "ob1", "--mca", "osc", "^ucx")
    made = [
        System("openmpi", _openmpi("--bind-to", "none"), MPI_OPS, most=16),
        System("openmpi ob1", _openmpi("--bind-to", "none", *plain), MPI_OPS, most=16),
        System("openmpi bound", _openmpi("--bind-to", "core"), MPI_OPS, bound=True),
        System("openmpi bound ob1", _openmpi("--bind-to", "core", *plain), MPI_OPS, bound=True),
        System("mpich", _mpich, MPI_OPS, most=16, names="mpich_shm_*"),
        System("by hand", _hand, AVERAGES | {"scatter"}, most=16),
    ]
    if has_torch():
        made.append(System("gloo", _gloo, AVERAGES | {"put-seen"}, most=16))
    return made


def base_environment() -> Environment:
    """Return what all ranks get: one thread each, and the package on the path."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    quiet = {"UCX_LOG_LEVEL": "fatal", "PYTHONPATH": str(Path(__file__).parents[1])}
    return {**os.environ, **threads, **quiet}
