"""The same warning of several ranks is shown once, and none is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launching import run, script

from malt._cli.supervise import Kind
from malt._cli.warned import MOST, Warned
from malt._ranks.launch import Job
from malt._ranks.output import Display
from malt._ranks.rank import Outcome


@pytest.mark.parametrize("where", [("-n", "3"), ("-H", "127.0.0.1:1,localhost:2")])
def test_a_warning_of_all_ranks_is_shown_once_with_all_of_them(tmp_path: Path, where: tuple[str, str]) -> None:
    path = script(
        tmp_path,
        """
        import malt, warnings
        malt.barrier()
        print("before", end="", file=sys.stderr)
        warnings.warn("of all", stacklevel=1)
        if r == 1: warnings.warn("of one", stacklevel=1)
        """,
    )
    done = run("-q", *where, "--log-dir", str(tmp_path), path)
    lines = done.err.splitlines()
    assert sum("UserWarning: of all" in line and line.startswith("[") for line in lines) == 1, done.err
    assert sum("UserWarning: of one" in line and line.startswith("[1]") for line in lines) == 1, done.err
    assert [line.endswith("before") for line in lines].count(True) == 3, done.err
    named = [line for line in lines if line.startswith("malt run: rank")]
    first = next(line[1] for line in lines if "UserWarning: of all" in line)
    assert all(line.endswith(f" gave the same warning: {path}:7: UserWarning: of all") for line in named), done.err
    # One line, unless a rank is late.
    others = " ".join(line.partition(" gave")[0] for line in named)
    assert set(re.findall(r"\d", others)) == {*"012"} - {first}, done.err
    for rank in range(3):
        assert (tmp_path / f"rank-{rank}.log").read_text().count("UserWarning: of all") == 1


def test_what_the_program_does_with_its_warnings_stays(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import contextlib, io, malt, warnings
        malt.barrier()
        with contextlib.redirect_stderr(io.StringIO()) as text:
            warnings.warn("redirected", stacklevel=1)
        assert "redirected" in text.getvalue()
        with warnings.catch_warnings(record=True) as seen:
            warnings.warn("recorded", stacklevel=1)
        assert len(seen) == 1
        if not os.fork():
            warnings.warn("of a child", stacklevel=1)
            os._exit(0)
        os.wait()
        """,
    )
    done = run("-q", "-n", "2", path)
    assert (done.process.returncode, done.err.count("of a child")) == (0, 4), done.err  # and the line


class Made:
    """What is shown of warnings, and when the others are named."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self.due: list[object] = []
        job = Job(lambda *_: None)
        monkeypatch.setattr(job, "later", lambda _, call: self.due.append(call))
        display = Display(9, lambda _, lines: self.lines.extend(lines.decode().splitlines()))
        self.warned = Warned(job, display, self.lines.append, Kind("malt run", "rank").name)
        self.job = job

    def hear(self, rank: int, text: str, same: str = "") -> None:
        self.job.warned(Outcome(rank), text, same or text)


def test_a_warning_that_a_rank_repeats_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    for rank in (0, 1, 1, 0, 2):
        made.hear(rank, "careful")
    assert made.lines == ["[0] careful", "[1] careful"]
    made.warned.tell()
    assert made.lines[2:] == ["ranks 0-2 gave the same warning: careful"]
    made.warned.tell()
    assert len(made.lines) == 3


def test_figures_may_differ_and_other_lines_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    made.hear(0, "slow\n3 of 9", "slow")
    made.hear(4, "slow\n3 of 8", "slow")
    made.hear(1, "wait\nfor 2")
    made.hear(2, "wait\nfor 0")
    assert made.lines == ["[0] slow", "[0] 3 of 9", "[1] wait", "[1] for 2", "[2] wait", "[2] for 0"]
    assert len(made.due) == 1
    made.warned.tell()
    assert made.lines[6:] == ["rank 4 gave the same warning: slow"]


def test_few_warnings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    for number in range(MOST + 1):
        made.hear(0, f"at {number}")
    made.hear(1, "at 1")
    made.hear(1, "at 0")
    assert made.lines[-1] == "[1] at 0"
