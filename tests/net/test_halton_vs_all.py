"""``examples/halton_vs_all.py``: it runs by itself, and counts what goes over the cables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "halton_vs_all.py"


def test_bytes_are_3_to_7(tmp_path: Path) -> None:
    small = ["--k=1", "--rows=4000", "--every=100", "--passes=1", "--turns=1", "--rate=200", f"--out={tmp_path}"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *small], cwd=EXAMPLE.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line.split() for line in done.stdout.splitlines()]
    lines = {(line[0], line[1]): tuple(map(float, line[3:5])) for line in words if line[2:3] == ["8"]}
    assert set(lines) == {("all", "notify-ack"), ("halton", "notify-ack"), ("all", "bsp")}
    (all_sent, all_wire), (sent, wire) = lines["all", "notify-ack"], lines["halton", "notify-ack"]
    model = 408 * 8 / 1000
    assert (all_sent, sent) == (round(7 * model, 1), round(3 * model, 1))
    # Besides the steps' models there are, in each run, a first one, the last average and some headers.
    assert 3 * model < wire < all_wire
    assert all_wire > 7 * model
    assert (tmp_path / "halton_vs_all.png").stat().st_size > 10_000
