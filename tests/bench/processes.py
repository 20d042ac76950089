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
from functools import partial
from pathlib import Path

from .environments import MissingError, run
from .rows import Row, Target
from .systems import AGAIN
from .turns import Plan, Result

SCRIPT = "import numpy as np\nimport malt\nmalt.Vector(np.zeros(4, np.float32))\n"


def starts(plan: Plan) -> list[Result]:
    """Importing MALT after numpy; a job of 4 over 4 plain interpreters at once."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)
        job = [sys.executable, "-m", "malt", "run", "-n", "4", str(script)]
        return [
            _in_turns(
                Row("import malt, after numpy", "start-import", 1, 0, Target(most=5e-3), baseline="none"),
                dict.fromkeys(("malt", AGAIN), _import),
                plan,
            ),
            _in_turns(
                Row("malt run -n 4, over 4 x numpy", "start-run", 4, 0, Target(over=0.3), baseline="4 x numpy"),
                {
                    **dict.fromkeys(("malt", AGAIN), lambda: _together([job])),
                    "limit": lambda: _together([[sys.executable, "-c", "import numpy"]] * 4),
                },
                plan,
            ),
        ]


def _in_turns(row: Row, contenders: dict[str, Callable[[], float]], plan: Plan) -> Result:
    for measured in contenders.values():
        measured()  # files that are read for the first time
    result = Result(row)
    for _ in range(plan.starts):
        for name in plan.shuffled(contenders):
            result.add(name, [contenders[name]() for _ in range(plan.turns)])
    return result


def _import() -> float:
    """Seconds that importing MALT takes in a process that has numpy: all that it adds, and nothing of numpy's."""
    code = "import time, numpy; t = time.perf_counter(); import malt; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def _together(commands: list[list[str]]) -> float:
    start = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError(f"{' '.join(commands[0])} failed")
    return time.perf_counter() - start


def go(plan: Plan) -> Result:
    """Put -> seen in Go: half of there and back over shm."""
    row = Row("put -> seen, in Go", "put-seen-go", 2, 64, Target(most=300e-9), baseline="none")
    return _go(row, plan, "./rdma/shm", {"malt": "RoundTrip", AGAIN: "RoundTrip"})


def go_tcp(plan: Plan) -> Result:
    """Put -> seen in Go over TCP within a process, beside half of there and back of as many bytes."""
    row = Row("put -> seen, in Go, one process", "put-seen-go-tcp", 2, 64, Target(limit=1.3))
    names = {"malt": "RoundTrip", AGAIN: "RoundTrip", "limit": "BarePingPong"}
    return _go(row, plan, "./rdma/remote", names)


def _go(row: Row, plan: Plan, package: str, names: dict[str, str]) -> Result:
    """Run benchmarks in turns; a way is half of what they take."""
    tool = shutil.which(os.environ.get("GO", "go"))
    if tool is None:
        return Result(row, left_out={"malt": "there is no Go compiler"})
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/bench"
        try:
            run([tool, "test", "-c", "-o", program, package], "the benchmarks cannot be compiled")
        except MissingError as error:
            return Result(row, left_out={"malt": str(error)})

        def measured(name: str) -> float:
            command = [program, "-test.run=^$", f"-test.bench=^Benchmark{name}$", "-test.benchtime=20ms"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = re.search(r"\s([\d.]+) ns/op", said)
            assert found is not None, said
            return float(found[1]) * 1e-9 / 2

        return _in_turns(row, {part: partial(measured, name) for part, name in names.items()}, plan)
