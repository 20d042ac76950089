"""`make bench BENCH='--deaths N'`: kills are measured, and what it costs to survive them; never how fast that is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from launching import LONG

from bench.deaths import MODES, markdown
from bench.rows import Row
from bench.turns import Result

TESTS = Path(__file__).parents[1]


def test_kills_are_measured(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bench",
        "--tiny",
        "--deaths",
        "2",
        "--starts",
        "1",
        "--turns",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert all(row["left_out"] == {} for row in found), found
    kills = [row for row in found if row["key"].startswith("kill-sync")]
    assert {(row["title"], row["ranks"]) for row in kills} == {(f"kill -> sync, {m}", n) for m in MODES for n in (2, 3)}
    for row in kills:
        for samples in (row["samples"]["malt"], row["samples"]["limit"]):
            assert len(samples) == 2, row
            assert all(0 < x < math.inf for x in samples), row
    cost = next(row for row in found if row["key"].startswith("sync"))
    assert {"malt", "continue"} == set(cost["samples"])
    assert (tmp_path / "deaths.md").read_text() in done.stdout


def test_table_of_kills() -> None:
    values = [i * 1e-3 for i in range(1, 102)]
    text = markdown([Result(Row("kill -> sync, bsp", "kill-sync", 4, 1 << 10), {"malt": values, "limit": values[:51]})])
    assert text.splitlines()[-1] == "| kill -> sync, bsp | 4 | 1 KB | 101 | 51 ms | 100 ms | 101 ms | 26 ms | 50.5 ms |"
