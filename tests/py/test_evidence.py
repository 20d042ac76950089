"""``python -m examples.evidence``: every claim has a program and a figure, or says what it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidence import filters, sparse
from evidence.__main__ import PROGRAMS
from evidence.shown import claims, kept

ROOT = Path(__file__).parents[2]


def evidence(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.evidence", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_every_claim_is_shown_or_says_why_not() -> None:
    assert len(claims()) == 66
    for id, claim in claims().items():
        assert (id in PROGRAMS) == (not claim.lacks), id
    assert set(kept()) == set(PROGRAMS)


def test_it_lists_and_shows() -> None:
    assert [line.split()[0] for line in evidence().stdout.splitlines()] == list(claims())
    shown = evidence("M17").stdout
    assert "all has 1.5, 2.33, 3.75, 6.2, 10.5 times" in shown
    assert shown.rstrip().endswith("holds")


@pytest.mark.parametrize(("row", "says"), [("X9", "no claim is called X9"), ("P7", "it needs a program")])
def test_it_says_what_it_cannot_show(row: str, says: str) -> None:
    done = evidence(row)
    assert done.returncode != 0
    assert says in done.stderr


@pytest.mark.parametrize("id", ["M1", "M17", "A3", "A10", "P15", "P16"])
def test_what_is_counted_is_what_is_kept(id: str) -> None:
    assert PROGRAMS[id]() == kept()[id]


def test_filters_send_less_at_the_same_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALT_DATA", raising=False)
    out = tmp_path / "found.json"
    job = [sys.executable, "-m", "malt", "run", "-n", "3", "filtered.py", "dvf:0", "dvf:0.1", "dvf-l2:0.1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples")}
    done = subprocess.run(
        [*job, "--passes=1", f"--out={out}"],
        cwd=Path(filters.__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    none, zero, dvf, length = json.loads(out.read_text())
    assert zero == {**none, "filter": "dvf:0"}
    assert dvf["loss"] == pytest.approx(none["loss"], rel=0.05)
    assert length["up"] < dvf["up"] < none["up"] / 2
    assert length["down"] < dvf["down"] < none["down"] / 2


@pytest.mark.parametrize("what", ["sums", "pages"])
def test_ranks_find_the_same_by_rows(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by whole arrays: of sums the ranks compare themselves; bytes are as computed from the ids."""
    monkeypatch.delenv("MALT_DATA", raising=False)
    out = tmp_path / "found.json"
    job = [
        sys.executable,
        "-m",
        "malt",
        "run",
        "-n",
        "4",
        "ranks.py",
        what,
        "--turns=2",
        f"--out={out}",
        "--size=20000",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples")}
    done = subprocess.run(
        job, cwd=Path(sparse.__file__).parent, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    if what == "pages":
        assert found["apart"] < 1e-12
    else:
        rows, _, gathered = found["bytes"]
        assert rows * 4 == pytest.approx(
            gathered, rel=0.02
        )  # 2/4 of it is for ids, and 1/2 of those that are left stay
    assert all(len(times) == 2 for times in found["times"].values())
