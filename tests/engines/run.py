"""``make test-engines``: ``malt.ray`` and ``malt.dask`` on clusters of this machine, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WHERE = ROOT / "build" / "engines"

PACKAGES = {"ray": ["ray", "cloudpickle"], "dask": ["dask[distributed]"]}

LONG = 600.0


def main() -> int:
    """Install and examine the engines that are named, by default all."""
    names = sys.argv[1:] or list(PACKAGES)
    (wheel,) = (ROOT / "dist").glob("malt-*.whl")
    python = WHERE / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "--quiet", "--no-progress", "--no-config"]
    install = [*uv, "pip", "install", "--only-binary", ":all:", "--python", str(python)]
    subprocess.run([*uv, "venv", "--allow-existing", "--python", sys.executable, str(WHERE)], check=True)
    subprocess.run([*install, *(package for name in names for package in PACKAGES[name])], check=True)
    subprocess.run([*install, "--reinstall-package", "malt", str(wheel)], check=True)
    with ThreadPoolExecutor() as pool:
        return max(pool.map(partial(_examine, python), names))


def _examine(python: Path, name: str) -> int:
    """Examine one engine; returns the status."""
    with tempfile.TemporaryDirectory() as home:  # Ray writes into it
        env = {
            **os.environ,
            "HOME": home,
            "RAY_DEDUP_LOGS": "0",
            "RAY_raylet_start_wait_time_s": "20",
            "OMP_NUM_THREADS": "1",
        }
        command = [python, HERE / "inside.py", name]
        return subprocess.run(command, cwd=home, env=env, timeout=LONG, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
