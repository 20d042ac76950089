"""`make bench-net` measures every operation; never how fast they are."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from bench.deaths import OPS
from bench.net.rows import tiny

TESTS = Path(__file__).parents[1]


def test_every_operation_is_measured(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bench",
        "--net",
        "--tiny",
        "--starts",
        "1",
        "--turns",
        "2",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {row["key"]: row for row in json.loads((tmp_path / "results.json").read_text())["rows"]}
    assert {key.split()[0] for key in found} == {row.op for row in tiny()} | {"put-seen-go-tcp"}
    for key, row in found.items():
        assert row["left_out"] == {}, key
        assert "malt" in row["samples"], key
        assert all(len(v) == 1 and 0 < v[0] < math.inf for v in row["samples"].values()), key
        assert all(len(v) == 1 and len(v[0]) == 2 for v in row["turns"].values()), key
        assert row["title"] in done.stdout


def test_deaths_are_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--net", "--tiny", "--deaths", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert {row["key"].split()[0] for row in found} == set(OPS)
    for row in found:
        assert row["left_out"] == {}, row
        assert len(row["samples"]["malt"]) == 1, row
        assert 0 < row["samples"]["malt"][0] < math.inf, row
    assert (tmp_path / "deaths.md").read_text() in done.stdout
