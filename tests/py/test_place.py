"""What a rank tells the others about where it is: the line of the user's, whichever way the call takes."""

from __future__ import annotations

import inspect
import os
import sys

import jobs
import pytest

import malt
from malt._lib import place
from malt._ranks import seen


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what will be told, as if there were another rank."""
    malt.init()
    texts: list[str] = []

    class Library:
        @staticmethod
        def malt_at(text: bytes) -> int:
            texts.append(text.decode(errors="ignore"))
            return 0

    monkeypatch.setattr(place, "lib", Library)
    monkeypatch.setattr(place, "wanted", True)
    monkeypatch.setattr(place, "_code", None)
    return texts


def lines(told: list[str]) -> list[str]:
    return [text.partition(": ")[2] for text in told]


def test_line_of_the_caller_is_told(told: list[str]) -> None:
    v = malt.Vector(3)
    v.sync(lambda own, updates: own)
    v.broadcast()
    malt.barrier()
    malt.allreduce(1)
    v.close()
    assert lines(told) == [
        "v = malt.Vector(3)",
        "v.sync(lambda own, updates: own)",
        "v.broadcast()",
        "malt.barrier()",
        "malt.allreduce(1)",
        "v.close()",
    ]
    assert all(text.startswith("test_place.py:") for text in told)


def test_loop_tells_once(told: list[str]) -> None:
    with malt.Vector(3, name="loop") as v:
        for _ in range(3):
            v.array[:] += 1
            v.sync()
        for _ in range(2):
            v.sync(every=10**9)  # which does nothing
    assert lines(told).count("v.sync()") == 1
    assert "v.sync(every=10**9)  # which does nothing" not in lines(told)


@pytest.mark.parametrize(
    "call", ["v.sync()", "v.sync(weight=2)", "v.sync(weight=0.5)", "v.sync(every=10**9, weight=2)", "v.sync(every=1)"]
)
def test_sync_in_a_loop_runs_no_python(told: list[str], call: str) -> None:
    """A guard on a count: from the second call on no function of Python is called."""
    called: list[str] = []
    calls = []
    with malt.Vector(3, name="loop") as v:
        for _ in range(10):  # in the first ones the values are watched
            v.array[:] += 1
            v.sync()
        loop = f"for _ in range(4):\n    {call}\n    calls.append(len(called))"
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
        try:
            exec(loop, {"v": v, "calls": calls, "called": called})
        finally:
            sys.setprofile(None)
        assert calls == [calls[0]] * 4
        assert "sync" in called  # the first, which tells the line, or goes to its count


def test_syncs_of_two_lines_run_no_python_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard on a count: each line is told again without a function of Python."""
    malt.init()
    monkeypatch.setattr(place, "wanted", True)
    called: list[str] = []
    shown: list[str] = []

    def show() -> None:
        shown.extend(rank.place.partition(": ")[2] for rank in seen.ranks() if rank.pid == os.getpid())

    with malt.Vector(3, name="v") as v, malt.Vector(3, name="w") as w:
        for step in range(12):  # in the first ones the values are watched
            if step == 11:
                sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
            try:
                v.array[:] += 1
                v.sync()
                if step < 11:
                    show()
                w.array[:] += 1
                w.sync()
            finally:
                sys.setprofile(None)
        show()
    assert called == ["array"] * 2
    assert shown == ["v.sync()"] * 11 + ["w.sync()"]


def test_what_sync_is_without_python(told: list[str]) -> None:
    with malt.Vector(3, name="loop") as v:
        assert list(inspect.signature(v.sync).parameters)[:3] == ["fold", "every", "rows"]
        assert "Scatter, then gather" in str(v.sync.__doc__)
        with pytest.raises(TypeError, match=r"Did you mean every\?"):
            v.sync(evry=2)  # type: ignore[call-arg]
        with pytest.raises(OverflowError):
            v.sync(weight=10**400)
        assert v.sync(every=1 << 70) is None
    with pytest.raises(malt.StaleError, match="has been closed"):
        v.sync()


def test_lines_in_turn_are_each_told(told: list[str]) -> None:
    for _ in range(2):
        malt.barrier()
        malt.allreduce(2)
    assert lines(told) == ["malt.barrier()", "malt.allreduce(2)"] * 2


def test_code_without_a_source_and_with_a_long_name(told: list[str]) -> None:
    exec(compile("malt.barrier()", "<cell 3>", "exec"), {"malt": malt})
    assert told == ["<cell 3>:1"]
    exec(compile("malt.barrier()" + " " * 200, f"{'é' * 100}.py", "exec"), {"malt": malt})
    assert told[1] == "é" * 80


def test_alone_nothing_is_told(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "wanted", False)
    malt.barrier()
    assert told == []


def test_wait_shows_the_line() -> None:
    with jobs.Job(
        2,
        """
        if r == 1:
            malt.allgather("met")
            print("there", flush=True)
            sys.stdin.readline()
        else:
            malt.allgather("met too")
            sys.stdin.readline()
            try:
                malt.barrier(timeout=0)
            except malt.TimeoutError as e:
                print(e)
        """,
    ) as job:
        job.ranks[1].out.wait_for("there")
        job.ranks[0].say("go on")
        assert job.ranks[0].out.wait_for('computing, its last call: script.py:7: malt.allgather[(]"met"[)][)]')
        job.ranks[1].say("go on")
        job.finish()
