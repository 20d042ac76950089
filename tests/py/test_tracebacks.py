"""What users see of an exception: their own lines, once, with all the ranks that it came to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from launching import run, script
from rank_work import wrong_option

import malt
from malt import _frames
from malt._cli.failures import Failures
from malt._cli.supervise import Kind
from malt._ranks.output import Display
from malt._ranks.rank import Outcome
from malt._ranks.report import LONGEST, Reporter

OWN = str(Path(malt.__file__).parent) + os.sep


def caught() -> BaseException:
    """Return what a call with a wrong option raises."""
    try:
        malt.Vector(3, start="some")  # type: ignore[call-overload]
    except ValueError as error:
        return error
    raise AssertionError


def shown(error: BaseException) -> str:
    with _frames.hidden(error):
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def test_frames_are_hidden_while_an_exception_is_shown_and_back_after_it() -> None:
    error = caught()
    before = error.__traceback__
    assert OWN not in shown(error)
    assert "malt.Vector(3" in shown(error)
    assert error.__traceback__ is before
    assert OWN in "".join(traceback.format_exception(type(error), error, before))


def test_all_frames_are_shown_for_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALT_LOG", "debug")
    assert OWN in shown(caught())


def test_a_mistake_of_malts_own_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("malt._vectors.vector.specs", None)
    with pytest.raises(TypeError, match="NoneType") as raised:
        malt.Vector(3)
    assert OWN in shown(raised.value)


def test_users_exceptions_stay_chained_and_what_malt_caught_itself_does_not() -> None:
    inner = caught()
    try:
        raise KeyError("mine") from inner
    except KeyError as error:
        text = shown(error)
        assert text.count("Traceback") == 2
        assert "direct cause" in text
        assert OWN not in text
    # A frame of malt's in which one exception is handled and another raised.
    names = {"__name__": "malt._somewhere"}
    exec("def call():\n try: 1 / 0\n except ZeroDivisionError: raise ValueError('malt: no')", names)
    with pytest.raises(ValueError, match="malt: no") as raised:
        names["call"]()
    assert "During handling" not in shown(raised.value)
    assert isinstance(raised.value.__context__, ZeroDivisionError)
    assert not raised.value.__suppress_context__


@pytest.mark.parametrize("debug", [False, True])
def test_plain_python_shows_the_users_lines_alone(tmp_path: Path, debug: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text("import malt\nmalt.Vector(3, start='some')\n")
    env = {**os.environ, "MALT_LOG": "debug" if debug else ""}
    done = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "malt.Vector(3" in done.stderr
    assert (OWN in done.stderr) == debug


# ---------------------------------------------------------------- several ranks


def test_consequences_are_a_line_and_the_cause_comes_once_in_full(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.barrier()
        if r == 1:
            raise KeyError("the cause")
        malt.barrier()
        """,
    )
    done = run("-q", "-n", "4", "--log-dir", str(tmp_path), path, patient="FAIL")
    lines = done.err.splitlines()
    assert done.err.count("Traceback") == 1
    assert lines[-1] == "malt run: rank 1 failed with KeyError"
    assert lines[-2].startswith("malt run: ranks 0, 2 and 3 failed because rank 1 was gone (PeerError), at script.py:")
    assert lines[-2].endswith(": malt.barrier()")
    for rank, name in enumerate(("PeerError", "KeyError", "PeerError", "PeerError")):
        log = (tmp_path / f"rank-{rank}.log").read_text()
        assert log.count("Traceback") == 1
        assert name in log


def test_the_same_failure_of_all_ranks_is_shown_once(tmp_path: Path) -> None:
    """Also where a function of the user's raised it, which malt has called: that stays to be seen."""
    path = script(
        tmp_path,
        """
        import malt
        def fold(own, updates):
            return own / updates[0].nothing
        v = malt.Vector(10, fold=fold)
        v.sync()
        """,
    )
    done = run("-q", "-n", "3", path)
    assert done.err.count("Traceback") == 1
    assert done.err.count("updates[0].nothing") == 1
    assert OWN not in done.err
    assert done.err.splitlines()[-1].startswith("malt run: rank")


def test_a_failure_before_a_rank_joins_is_shown_once(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt, numpy as np\nmalt.Vector(np.zeros(3, int))")
    done = run("-q", "-n", "3", path, patient="FAIL")
    assert done.process.returncode == 1
    assert done.err.count("Traceback") == 1
    assert re.match(r"malt run: ranks? .* failed with TypeError", done.err.splitlines()[-1])


def test_the_failure_of_a_forked_child_is_not_its_ranks(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        if not os.fork():
            raise ValueError("the child's")
        os.wait()
        malt.barrier()
        """,
    )
    done = run("-q", "-n", "2", path)
    assert (done.process.returncode, done.err.count("ValueError: the child's")) == (0, 2)


@pytest.mark.parametrize("others", [False, True])
def test_a_rank_that_syncs_alone_gets_a_warning(tmp_path: Path, others: bool) -> None:
    path = script(
        tmp_path,
        f"""
        import malt
        v = malt.Vector(3)
        v.array[:] += r
        if r == 0 or {others}: v.sync()
        v.allreduce()
        """,
    )
    done = run("-q", "-n", "3", path)
    assert done.process.returncode == 0
    assert done.err.count("no other rank took part in the first sync of v") == (not others)


def test_a_mismatch_is_shown_once_with_where_the_others_were(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt\nmalt.barrier()\nmalt.barrier() if r else malt.allgather(3)")
    done = run("-q", "-n", "3", path, patient="FAIL")
    assert done.err.count("MismatchError: malt: the ranks are in different collective calls") == 1
    assert OWN not in done.err


def test_what_a_rank_prints_itself_stays_as_it_is(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt, traceback
        malt.barrier()
        try: raise KeyError("printed")
        except KeyError:
            traceback.print_exc()
            malt.barrier()
            sys.exit(3)
        """,
    )
    done = run("-q", "-n", "2", path)
    assert done.process.returncode == 3
    assert [done.err.count(f"[{rank}] KeyError: 'printed'") >= 1 for rank in (0, 1)] == [True, True]


def test_a_traceback_that_is_too_long_to_be_handed_on_is_printed(tmp_path: Path) -> None:
    path = script(tmp_path, f"import malt\nmalt.barrier()\nif r: raise KeyError('x' * {LONGEST})\nmalt.barrier()")
    done = run("-q", "-n", "2", path)
    assert "x" * 50_000 in done.err
    assert "malt run: rank 1 failed with KeyError" in done.err


def test_without_a_launcher_that_reads_the_rank_has_to_print() -> None:
    reader, writer = os.pipe()
    reporter = Reporter(f"{writer}:{os.fstat(writer).st_ino}")
    assert reporter.failed(caught(), shown=True)
    os.close(reader)
    assert not reporter.failed(caught(), shown=True)
    assert not Reporter(None).failed(caught(), shown=True)
    os.close(writer)


# ---------------------------------------------------------------- what the launcher makes of it


def failures(*words: tuple[int, str, str, int | None, str]) -> tuple[Failures, list[Outcome], list[bytes]]:
    """Return failures of ranks: type, what is the same, the dead rank, and the place."""
    got: list[bytes] = []
    made = Failures(Display(9, lambda _, lines: got.append(lines)))
    ranks = []
    for number, kind, same, dead, place in words:
        ranks.append(Outcome(number))
        text = f"Traceback (most recent call last):\n{kind} {same} at {place}\n"
        ranks[-1].words = {"type": kind, "text": text, "same": same, "dead": dead, "place": place}
        made.heard(ranks[-1])
    return made, ranks, got


NAME = Kind("malt run", "rank").name


def test_a_death_of_which_nothing_else_is_known_is_shown_in_full_at_the_end() -> None:
    made, ranks, got = failures((0, "PeerError", "rank 7 is dead", 7, "a"), (2, "PeerError", "rank 7 is dead", 7, "b"))
    assert got == []
    killed = Outcome(7)
    ((sentence, words),) = made.others(killed, NAME)
    assert sentence == "ranks 0 and 2 failed with PeerError:"
    assert words.startswith(b"[0] Traceback")
    assert not list(made.others(killed, NAME, {7})), "the launcher has stopped it"
    # Where the dead rank belongs to another launcher, one of these is the first failure.
    assert made.words(ranks[1]).startswith(b"[0] Traceback")
    assert [sentence for sentence, _ in made.others(ranks[1], NAME)] == ["rank 2 saw it at b"]


def test_different_failures_stay_apart() -> None:
    made, ranks, got = failures(
        (0, "ValueError", "", None, "a"),
        (1, "KeyError", "", None, "b"),
        (2, "KeyError", "", None, "b"),
        (3, "PeerError", "rank 1 is dead", 1, "c"),
    )
    assert [lines.count(b"Traceback") for lines in got] == [1, 1]
    assert [sentence for sentence, _ in made.others(ranks[0], NAME)] == [
        "ranks 1 and 2 failed with KeyError",
        "rank 3 failed because rank 1 was gone (PeerError), at c",
    ]


def test_many_ranks_are_named_as_ranges() -> None:
    assert NAME([3]) == "rank 3"
    assert NAME([2, 0]) == "ranks 0 and 2"
    assert NAME([*range(60), 62, 63, 70]) == "ranks 0-59, 62, 63 and 70"


def test_malt_run_names_all_ranks_that_failed_in_the_same_way() -> None:
    with pytest.raises(ValueError, match="malt: start=") as raised:
        malt.run(wrong_option, 2)
    (note,) = getattr(raised.value, "__notes__", [str(raised.value.__cause__)])
    assert note.startswith("On rank")
    assert note.count("Traceback") == 1
    assert OWN not in note


def test_frames_are_hidden_in_threads() -> None:
    program = "import malt, threading\nmalt.init()\nthreading.Thread(target=malt.Vector, args=('x',)).start()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Exception in thread" in done.stderr
    assert "TypeError: malt: " in done.stderr
    assert OWN not in done.stderr


@pytest.mark.parametrize("call", ["malt.Vector(3, start='some')", "malt.run(work, 2)"])
def test_frames_are_hidden_in_cells(call: str) -> None:
    pytest.importorskip("IPython")
    pytest.importorskip("cloudpickle")
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
        "shell.run_cell('import malt\\ndef work():\\n    raise ValueError(\"mine\")')\n"
        f"shell.run_cell({call!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = done.stdout + done.stderr
    assert "ValueError" in said
    assert f"malt{os.sep}_" not in said, said
