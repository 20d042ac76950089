"""``make test-engines``: ``malt.ray`` and ``malt.dask`` on clusters of this machine, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
    codes = []
    for name in names:
        with tempfile.TemporaryDirectory() as home:  # Ray writes into it
            env = {**os.environ, "HOME": home, "RAY_DEDUP_LOGS": "0"}
            codes.append(
                subprocess.run(
                    [python, HERE / "inside.py", name], cwd=home, env=env, timeout=LONG, check=False
                ).returncode
            )
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
