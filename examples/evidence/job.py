"""Ranks for a claim: ``job`` starts them, and each calls ``be``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import malt

from .shown import NotShownError

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent


def job(
    ranks: int,
    script: str,
    work: str,
    /,
    *,
    rate: str = "",
    hosts: int = 0,
    mpi: bool = False,
    on_death: str = "stop",
    **given: object,
) -> Any:
    """Have ranks do the work of a script, and return what rank 0 has found.

    Parameters
    ----------
    ranks : int
    script : str
        In this folder: it calls `be`.
    work : str
        The name of one of its functions.
    rate : str
        Of the network; by default all ranks are processes of this machine.
    hosts : int
        On that network, with as many ranks each; by default each rank has one.
    mpi : bool
        Start them by Open MPI, if it is installed beside this Python, so that they can use that, too.
    on_death : str
        What a death does to the others.
    **given
        Arguments of the function.
    """
    hosts = hosts or ranks
    start = [sys.executable, "-m", "malt", "run", "-n", str(ranks), "--on-death", on_death]
    if rate:
        start[3:] = ["sim", "--hosts", str(hosts), "-n", str(ranks // hosts), "--rate", rate]
    if mpi and has_mpi():
        start = [str(BIN / "mpirun"), "--oversubscribe", "--bind-to", "none", "-n", str(ranks), sys.executable]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [*start, str(HERE / script), work, json.dumps(given), out.name]
        python = {**os.environ, **root, "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(command, env=python, stdout=sys.stderr, check=False)
        if done.returncode:
            raise NotShownError(f"the job ended with exit code {done.returncode}; its message stands above")
        return json.loads(Path(out.name).read_text())


def has_mpi() -> bool:
    """Tell whether Open MPI and mpi4py are installed beside this Python."""
    return shutil.which("mpirun", path=BIN) is not None


def be(*works: Callable[..., Any]) -> None:
    """Be a rank: do the work that the arguments name; rank 0 writes what it returns."""
    name, given, out = sys.argv[1:]
    found = {work.__name__: work for work in works}[name](**json.loads(given))
    if malt.rank() == 0:
        Path(out).write_text(json.dumps(found))
