"""Fresh virtual environments: the wheel with little beside it, on each Python, with the oldest numpy and the newest."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WHERE = ROOT / "build" / "envs"
TORCH = Path(sysconfig.get_path("purelib")) / "torch.pth"
"""Leads to the PyTorch of `make torch`, which is too large to be installed for each environment."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
AT_ONCE = 2
LONG = 120.0
"""Seconds after which a command has failed. None takes that long unless it hangs."""

IMPORT = "import numpy, time; t = time.perf_counter(); import malt; print(1e3 * (time.perf_counter() - t))"


class Environment(NamedTuple):
    """What is installed besides the wheel and what the wheel depends on."""

    python: str
    """Its version, first two parts."""
    packages: tuple[str, ...] = ()
    oldest: bool = False
    """The oldest numpy and cffi that the wheel accepts, instead of the newest."""
    torch: bool = False

    @property
    def name(self) -> str:
        parts = (["oldest"] if self.oldest else []) + list(self.packages) + (["torch"] if self.torch else [])
        return "-".join([self.python, *parts])


def environments(pythons: list[str]) -> Iterator[Environment]:
    """Yield what is tried, given the versions of Python that there are, oldest first."""
    yield Environment(pythons[0], oldest=True)
    yield Environment(pythons[0], ("scipy", "scikit-learn", "ipykernel"), oldest=True)
    for python in pythons:
        yield Environment(python)
    for package in ("scipy", "scikit-learn", "ipykernel"):
        yield Environment(pythons[-1], (package,))
    if TORCH.exists():
        yield Environment(f"{sys.version_info[0]}.{sys.version_info[1]}", torch=True)
    else:
        print("skipped: the environment with PyTorch, which make torch installs", flush=True)


def find(version: str) -> str | None:
    """Return the interpreter of that version: on the path, or one of pyenv's."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shutil.which(f"python{version}")
    for path in [*([named] if named else []), *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))]:
        # What pyenv puts on the path may only say that the version is not chosen.
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return path
    return None


class FailedError(Exception):
    """A command of an environment did not do what it should."""


def show(command: Sequence[str | Path]) -> str:
    return shlex.join(map(str, command))


def call(*command: str | Path, cwd: Path) -> str:
    """Run a command as a user would who has only this environment; return what it printed."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("MALT_", "PYTHON", "VIRTUAL_ENV"))}
    environ |= {"HOME": str(cwd), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=LONG, errors="replace"
        )
    except subprocess.TimeoutExpired as e:
        said = b"\n".join(part for part in (e.stdout, e.stderr) if part).decode(errors="replace")
        raise FailedError(f"{show(command)} did not end within {LONG:g} s:\n{said}") from None
    if done.returncode != 0:
        raise FailedError(f"{show(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def uv(*arguments: str | Path) -> str:
    """Run uv, which makes an environment from its cache in a tenth of pip's time."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "--quiet",
        "--no-progress",
        "--no-config",
        "--no-python-downloads",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FailedError(f"{show(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def create(environment: Environment, interpreter: str, wheel: Path) -> Path:
    """Install the wheel and the packages; return the environment's folder of programs."""
    folder = WHERE / environment.name
    uv("venv", "--clear", "--python", interpreter, folder)
    install: list[str | Path] = ["pip", "install", "--only-binary", ":all:", "--python", folder / "bin/python"]
    if environment.oldest:
        uv(*install, "--resolution", "lowest", wheel)
        # The others as new as they can be with that numpy.
        (folder / "kept.txt").write_text(uv("pip", "freeze", "--exclude", "malt", "--python", folder / "bin/python"))
        install += ["--constraints", folder / "kept.txt"]
    uv(*install, wheel, *environment.packages)
    if environment.torch:
        (site,) = folder.glob("lib/python*/site-packages")
        shutil.copy(TORCH, site)
    return folder / "bin"


def examine(environment: Environment, programs: Path, cwd: Path) -> str:
    """Use MALT in all ways that the environment allows; return the versions and figures."""
    python = programs / "python"
    version = (ROOT / "VERSION").read_text().strip()
    if version not in call(programs / "malt", "--version", cwd=cwd):
        raise FailedError(f"malt --version does not say {version}")
    call(programs / "malt", "doctor", cwd=cwd)

    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (cwd / "train.py").write_text(example)
    for size, command in [(1, (python,)), (2, (programs / "malt", "run", "-n", "2"))]:
        said = call(*command, "train.py", cwd=cwd)
        errors = re.findall(r"error (\S+)", said)
        if len(errors) != size or not all(float(error) < 1e-6 for error in errors):
            raise FailedError(f"the README's example as {size} ranks said:\n{said}")

    page = (ROOT / "docs/guide/c.md").read_text()
    program, commands = re.findall(r"^```(?:c|sh)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (cwd / "mean.c").write_text(program)
    said = call("sh", "-ec", f"PATH={shlex.quote(str(programs))}:$PATH\n{commands}", cwd=cwd)
    if len(re.findall("rank . of 2: mean 0.5$", said, re.MULTILINE)) != 2:
        raise FailedError(f"the guide's program of C said:\n{said}")

    has = [*environment.packages, *(["torch"] if environment.torch else [])]
    uses = call(python, HERE / "inside.py", *has, cwd=cwd).strip()
    milliseconds = min(float(call(python, "-c", IMPORT, cwd=cwd)) for _ in range(5))
    versions = re.findall(
        r"^(cffi|numpy|scipy|scikit-learn|ipykernel|torch)==(\S+)",
        uv("pip", "freeze", "--python", python),
        re.MULTILINE,
    )
    return f"{', '.join(map(' '.join, versions))}; {uses}; import malt {milliseconds:.1f} ms after numpy"


def extras_resolve(wheel: Path) -> bool:
    """Tell whether all extras can be installed together."""
    try:
        uv("pip", "install", "--dry-run", "--python", sys.executable, f"{wheel}[torch,sklearn,notebook,data,ray,dask]")
    except FailedError as e:
        print(f"FAILED extras: {e}", flush=True)
        return False
    return True


def attempt(environment: Environment, interpreter: str, wheel: Path) -> bool:
    """Create and examine an environment; print how it went."""
    start = time.perf_counter()
    ok, said = True, ""
    with tempfile.TemporaryDirectory() as empty:
        try:
            said = examine(environment, create(environment, interpreter, wheel), Path(empty))
        except FailedError as e:
            ok, said = False, str(e)
    seconds = time.perf_counter() - start
    print(f"{'ok' if ok else 'FAILED'} {environment.name} ({seconds:.1f} s): {said}", flush=True)
    return ok


def main() -> int:
    """Try all environments; the status is that of a command."""
    wheels = list((ROOT / "dist").glob("malt-*.whl"))
    if len(wheels) != 1:
        print(f"{len(wheels)} wheels in dist/: make wheel builds one", file=sys.stderr)
        return 2
    shutil.rmtree(WHERE, ignore_errors=True)
    interpreters = {version: path for version in PYTHONS if (path := find(version))}
    for version in PYTHONS:
        if version not in interpreters:
            print(f"skipped: Python {version}, which is not installed", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(attempt, e, interpreters[e.python], wheels[0]) for e in environments(list(interpreters))]
    done = [extras_resolve(wheels[0]), *(job.result() for job in jobs)]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
