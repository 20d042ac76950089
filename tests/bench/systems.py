"""Who takes part, and how the ranks of each are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .environments import environment, limit_library

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

AGAIN = "malt again"
"""MALT a second time: the two differ by noise alone."""

Command = list[str]
Environment = dict[str, str]
Start = Callable[[int], list[tuple[Command, Environment]]]


@dataclass(frozen=True)
class System:
    """A contender, in one of its settings."""

    name: str
    start: Start
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


AVERAGES = frozenset({"sync", "allreduce", "write-sync", "skew"})
WINDOW = "bench.ranks.window_rank"
MPI_OPS = AVERAGES | {"scatter", "put-seen"}


def _rank(name: str) -> Command:
    return [sys.executable, "-m", f"bench.ranks.{name}_rank"]


MORTAL_OPS = AVERAGES - {"skew"} | {"scatter", "gather", "sync-graph", "write-graph"}
"""What is compared with and without ``on_death=continue``."""


def on_death(what: str, program: str = "bench.ranks.malt_rank") -> Start:
    """Return how to start MALT's ranks, which then stop at a death, or continue."""

    def start(ranks: int) -> list[tuple[Command, Environment]]:
        from malt._ranks.launch import job_environment

        job = job_environment(ranks) | {"MALT_ON_DEATH": what}
        return [([sys.executable, "-m", program], {**job, "MALT_RANK": str(r)}) for r in range(ranks)]

    return start


_malt = on_death("stop")


def _mpi(name: str, launcher: str, *settings: str, program: str = "bench.ranks.mpi_rank", **more: str) -> Start:
    """Return how to start the ranks of the MPI in an environment of that name."""

    def start(ranks: int) -> list[tuple[Command, Environment]]:
        folder = environment(name) / "bin"
        env = {
            "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}",  # Intel's launcher looks for its parts there
            "MPI4PY_RC_THREADS": "0",  # mpi4py asks for locks, which cost each call, and MPICH its release_gather
            **more,
        }
        return [([str(folder / launcher), *settings, "-n", str(ranks), str(folder / "python"), "-m", program], env)]

    return start


def openmpi(bind: str, program: str = "bench.ranks.mpi_rank", **options: str) -> Start:
    """Return how to start Open MPI with options of its components."""
    chosen = [part for name, value in options.items() for part in ("--mca", name, value)]
    return _mpi("openmpi", "mpirun", "--oversubscribe", "--bind-to", bind, *chosen, program=program, **AS_ROOT)


def _hand(_: int) -> list[tuple[Command, Environment]]:
    return [(_rank("hand"), {})]


def _limit(_: int) -> list[tuple[Command, Environment]]:
    return [(_rank("limit"), {"BENCH_LIMIT": str(limit_library())})]


def alone() -> list[System]:
    """MALT, and the limit."""
    moved = AVERAGES | {"scatter", "gather", "write-graph", "copy", "read"}
    own = frozenset(
        {
            "gather-own-fold",
            "numpy-fold",
            "gather-idle",
            "sync-idle",
            "sync-graph",
            "write-graph",
            "put-seen",
            "put-awaited",
            "stopped",
            "sparse",
            "memory",
        }
    )
    malt = System("malt", _malt, AVERAGES | {"scatter", "gather"} | own)
    return [malt, replace(malt, name=AGAIN), System("limit", _limit, frozenset(moved))]


def mortal() -> list[System]:
    """MALT as it is, and with ``on_death=continue``, which stands in the place of a peer."""
    return [System("malt", _malt, MORTAL_OPS), System("continue", on_death("continue"), MORTAL_OPS)]


def peers() -> list[System]:
    """The others, each in the settings that could be its best: the table takes the best.

    gloo is not among them: its place is between hosts. Neither are xhc, acoll and XPMEM, which the wheel of Open MPI
    lacks.
    """
    ob1 = {"pml": "ob1", "osc": "^ucx"}
    forced = {"coll": "^han", "coll_tuned_use_dynamic_rules": "1"}
    shared = {"I_MPI_FABRICS": "shm"}
    made = [
        System("openmpi", openmpi("none", **ob1), MPI_OPS, most=16),
        System("openmpi ucx", openmpi("none"), MPI_OPS, most=16),
        System("openmpi bound", openmpi("core", **ob1), MPI_OPS, bound=True),
        System("openmpi bound ucx", openmpi("core"), MPI_OPS, bound=True),
        System("openmpi sm", openmpi("core", **ob1, coll_sm_priority="90"), AVERAGES, bound=True),
        System("mpich", _mpi("mpich", "mpiexec"), MPI_OPS, most=16, names="mpich_shm_*"),
        System("mpich bound", _mpich("auto"), MPI_OPS, bound=True, names="mpich_shm_*"),
        System("mpich release_gather", _mpich("release_gather"), AVERAGES, bound=True, names="mpich_shm_*"),
        System("intel mpi", _mpi("intelmpi", "mpirun", **shared), MPI_OPS, bound=True),
        System(
            "intel mpi unbound",
            _mpi("intelmpi", "mpirun", **shared, I_MPI_PIN="0", I_MPI_WAIT_MODE="1"),
            MPI_OPS,
            most=16,
        ),
        System("window intel mpi", _mpi("intelmpi", "mpirun", program=WINDOW, **shared), AVERAGES, bound=True),
        System("window mpich", _mpich("auto", program=WINDOW), AVERAGES, bound=True, names="mpich_shm_*"),
        System("by hand", _hand, AVERAGES | {"scatter"}, most=16),
    ]
    for number, name in (("3", "doubling"), ("4", "ring"), ("6", "rabenseifner")):
        start = openmpi("core", **ob1, **forced, coll_tuned_allreduce_algorithm=number)
        made.append(System(f"openmpi {name}", start, AVERAGES, bound=True))
    return made


def _mpich(algorithm: str, program: str = "bench.ranks.mpi_rank") -> Start:
    """Return how to start MPICH bound to cores, and its algorithm for averages in shared memory."""
    chosen = {"MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": algorithm, "MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "0"}
    return _mpi("mpich", "mpiexec", "-bind-to", "core", program=program, **chosen)


def base_environment() -> Environment:
    """Return what all ranks get: one thread each, and the package on the path."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    quiet = {"UCX_LOG_LEVEL": "fatal", "PYTHONPATH": str(Path(__file__).parents[1])}
    return {**os.environ, **threads, **quiet}
