"""`make bench-training`: what is reached is reached by learning; never how fast that is."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from bench.training import show
from bench.training.race import Race
from bench.training.tasks import TASKS
from bench.turns import Plan

NAMES = ["serial", "MALT all, bsp"]


def test_serial_and_malt_learn_against_the_clock(tmp_path: Path) -> None:
    # A third of the windows are splice sites: what has learnt nothing is wrong about all, or a third.
    task = replace(TASKS["splice, scikit-learn"], target=0.1)
    start = time.monotonic()
    found = Race(task, 2, rows=20_000, rates=(2,), intervals=(1,)).run(Plan(1, 1), NAMES)
    end = time.monotonic()
    assert [one.contender for one in found] == NAMES
    for one in found:
        assert not one.left_out
        assert 0.05 < one.final[0] < task.target, one
        assert 0 < one.seconds[0] < end - start, one
    assert [one.lines for one in found] == [0, 7]
    assert found[0].final != found[1].final
    show.keep(tmp_path, found)
    assert len(json.loads((tmp_path / "results.json").read_text())["outcomes"]) == 2
    assert all(one.contender in (tmp_path / "table.md").read_text() for one in found)
    assert (tmp_path / "training.png").exists()
