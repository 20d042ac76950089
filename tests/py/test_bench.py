"""`make bench` measures every operation; never how fast they are."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

from bench.rows import rows

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("cc") is None, reason="the limit's kernels need a C compiler")
def test_every_operation_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--tiny", "--starts", "1", "--turns", "2", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {row["key"]: row for row in json.loads((tmp_path / "results.json").read_text())["rows"]}
    assert {row["key"].split()[0] for row in found.values()} == {r.op for r in rows(4)} | {"start-import", "start-run"}
    for row in found.values():
        assert row["left_out"] == {}, row["key"]
        assert row["samples"], row["key"]
        assert all(len(v) == 1 and 0 < v[0] < math.inf for v in row["samples"].values()), row["key"]
        assert all(len(v) == 1 and len(v[0]) == 2 for v in row["turns"].values()), row["key"]
        assert ("malt again" in row["samples"]) == bool(row["demands"]), row["key"]
        assert row["title"] in done.stdout
