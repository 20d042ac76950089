"""``python -m examples.evidence``: every claim has a program and a figure, or says what it lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

from evidence import slack
from evidence.__main__ import PROGRAMS
from evidence.job import job
from evidence.shown import claims, kept

ROOT = Path(__file__).parents[2]


def evidence(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.evidence", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG, check=False)


def test_every_claim_is_shown_or_says_why_not() -> None:
    assert len(claims()) == 66
    for id, claim in claims().items():
        assert (id in PROGRAMS) == (not claim.lacks), id
    assert set(kept()) == set(PROGRAMS)
    for id, shown in kept().items():
        assert shown.verdict == "holds" or claims()[id].why, id


def test_it_lists_and_shows() -> None:
    assert [line.split()[0] for line in evidence().stdout.splitlines()] == list(claims())
    shown = evidence("M17").stdout
    assert "all has 1.5, 2.33, 3.75, 6.2, 10.5 times" in shown
    assert shown.rstrip().endswith("holds")


@pytest.mark.parametrize(("row", "says"), [("X9", "no claim is called X9"), ("A7", "it needs a machine")])
def test_it_says_what_it_cannot_show(row: str, says: str) -> None:
    done = evidence(row)
    assert done.returncode != 0
    assert says in done.stderr


@pytest.mark.parametrize("id", ["M1", "M17", "A3", "A10", "P15", "P16"])
def test_what_is_counted_is_what_is_kept(id: str) -> None:
    assert PROGRAMS[id]() == kept()[id]


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALT_DATA", raising=False)


@pytest.mark.usefixtures("no_data")
def test_filters_send_less_at_the_same_loss() -> None:
    none, zero, dvf, length = job(3, "filtered.py", "trained", filters=["", "dvf:0", "dvf:0.1", "dvf-l2:0.1"], passes=1)
    assert zero == {**none, "filter": "dvf:0", "used": zero["used"]}
    assert dvf["loss"] == pytest.approx(none["loss"], rel=0.05)
    assert length["up"] < dvf["up"] < none["up"] / 2
    assert length["down"] < dvf["down"] < none["down"] / 2


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(("what", "given"), [("sums", {"size": 20_000}), ("pages", {})])
def test_ranks_find_the_same_by_rows(what: str, given: dict[str, int]) -> None:
    """As by whole arrays: of sums the ranks compare themselves; bytes are as computed from the ids."""
    found = job(4, "ranks.py", what, turns=2, **given)
    if what == "pages":
        assert found["apart"] < 1e-12
    else:
        rows, _, gathered = found["bytes"]
        assert rows * 4 == pytest.approx(
            gathered, rel=0.02
        )  # 2/4 of it is for ids, and 1/2 of those that are left stay
    assert all(len(times) == 2 for times in found["times"].values())


SSP = {"fold": "mean-changes", "consistency": "ssp:2"}


@pytest.mark.usefixtures("no_data")
def test_changes_are_as_old_as_the_slack_and_learn_as_much() -> None:
    runs = {"bsp": {}, "all": SSP, "shards": {**SSP, "graph": "shards"}}
    ages = job(3, "paced.py", "ages", runs={"all": runs["all"]}, pace=0.001, steps=40)
    assert ages["all"] <= 2
    times = job(3, "paced.py", "calls", runs=runs, pace=0.001, steps=10, turns=2)
    assert [len(times[name]) for name in runs] == [2, 2, 2]
    found = job(3, "paced.py", "learn", runs=runs, passes=1, points=2)
    steps = sum(found["bsp"]["updates"])
    assert found["bsp"]["updates"] == [0, 0, steps]
    for run in found.values():
        assert sum(run["updates"]) == steps
        assert len(run["curve"]) >= 2
        assert run["loss"] == pytest.approx(found["bsp"]["loss"], rel=0.1)


def test_a_rank_that_never_waits_is_as_old_as_the_slowest() -> None:
    (in_step, time, ages), (inside, less, older) = slack.virtual(8, 100, 0), slack.virtual(8, 100, 100)
    assert inside == 0 < in_step
    assert less < time
    assert ages.max() == 0 < older.max()
