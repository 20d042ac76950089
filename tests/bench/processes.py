"""Rows that are whole processes: what starting costs, and what the Go core does by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .environments import ROOT
from .rows import Row, Target
from .turns import Result

SCRIPT = "import numpy as np\nimport malt\nmalt.Vector(np.zeros(4, np.float32))\n"


def starts(turns: int) -> list[Result]:
    """Importing MALT over importing numpy; a job of 4 over 4 plain interpreters at once."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)
        job = [sys.executable, "-m", "malt", "run", "-n", "4", str(script)]
        return [
            _in_turns(
                Row("import malt, over numpy", "start-import", 1, 0, Target(over=5e-3), baseline="import numpy"),
                lambda: _import("numpy, malt"),
                lambda: _import("numpy"),
                turns,
            ),
            _in_turns(
                Row("malt run -n 4, over 4 x numpy", "start-run", 4, 0, Target(over=0.3), baseline="4 x numpy"),
                lambda: _together([job]),
                lambda: _together([[sys.executable, "-c", "import numpy"]] * 4),
                turns,
            ),
        ]


def _in_turns(row: Row, own: Callable[[], float], base: Callable[[], float], turns: int) -> Result:
    result = Result(row, {"malt": [], "limit": []})
    own(), base()  # files that are read for the first time
    for _ in range(turns):
        result.samples["malt"].append(own())
        result.samples["limit"].append(base())
    return result


def _import(names: str) -> float:
    code = f"import time; t = time.perf_counter(); import {names}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def _together(commands: list[list[str]]) -> float:
    start = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError(f"{' '.join(commands[0])} failed")
    return time.perf_counter() - start


def go(turns: int) -> Result:
    """Put -> seen in Go: half of there and back over shm."""
    result = Result(Row("put -> seen, in Go", "put-seen-go", 2, 8, Target(most=300e-9), baseline="none"))
    tool = shutil.which(os.environ.get("GO", "go"))
    if tool is None:
        result.left_out["malt"] = "there is no Go compiler"
        return result
    command = [tool, "test", "-run", "^$", "-bench", "^BenchmarkRoundTrip$", "-benchtime", "20ms"]
    done = subprocess.run([*command, "-count", str(turns), "./rdma/shm"], cwd=ROOT, capture_output=True, text=True)
    values = [float(found) * 1e-9 / 2 for found in re.findall(r"\s([\d.]+) ns/op", done.stdout)]
    if values:
        result.samples["malt"] = values
    else:
        result.left_out["malt"] = (done.stdout + done.stderr)[-200:]
    return result
