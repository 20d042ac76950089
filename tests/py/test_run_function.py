"""``malt.run``: a function on new ranks."""

from __future__ import annotations

import functools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_work
from launching import LONG, MARK, launched, marked, soon, wait_for_end

import malt


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """Every process of a test carries its mark; in the end none may be left, nor a descriptor."""
    mark = f"{request.node.name}-{time.monotonic_ns()}"
    monkeypatch.setenv(MARK, mark)
    malt.size()  # joins a job of one, which keeps a few descriptors
    before = os.listdir("/proc/self/fd")
    yield
    assert [pid for pid in marked(mark) if not wait_for_end(pid, 0)] == []
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_results_come_in_rank_order(size: int) -> None:
    assert malt.run(rank_work.place, size, ("a",), {"b": 1}) == [(r, size, ("a",), {"b": 1}) for r in range(size)]


def test_ranks_are_one_job_and_the_caller_is_none_of_them() -> None:
    assert malt.run(rank_work.total, 4) == [6.0] * 4
    assert malt.size() == 1


def test_nested_functions_and_lambdas() -> None:
    pytest.importorskip("cloudpickle")
    word = "outer"
    assert malt.run(lambda x: word + x, 2, ("!",)) == ["outer!"] * 2


def test_any_callable() -> None:
    assert malt.run(math.sqrt, 2, (16.0,)) == [4.0] * 2
    assert malt.run(functools.partial(math.pow, 2.0), 1, (3.0,)) == [8.0]


def test_large_arguments_and_results() -> None:
    x = np.arange(1_000_000)
    results = malt.run(rank_work.large, 3, (x,))
    for rank, result in enumerate(results):
        np.testing.assert_array_equal(result, x + rank)


def test_output_is_shown_with_the_rank(capsys: pytest.CaptureFixture[str]) -> None:
    malt.run(rank_work.shout, 2)
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert sorted(err.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_exception_is_raised_in_the_caller_with_the_ranks_traceback() -> None:
    with soon(), pytest.raises(KeyError, match="the reason") as caught:
        malt.run(rank_work.fail, 3, ("key",))
    (note,) = getattr(caught.value, "__notes__", None) or [str(caught.value.__cause__)]
    assert note.startswith("On rank 1:")
    assert 'raise KeyError("the reason")' in note
    assert "child.py" not in note


def test_exception_that_pickle_cannot_make_again() -> None:
    with pytest.raises(malt.Error, match="rank 1 raised OwnError\nown 1 2"):
        malt.run(rank_work.fail, 2, ("own",))


def test_the_cause_is_raised_and_not_what_it_did_to_the_others() -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="the cause"):
            malt.run(rank_work.collective_after_failure, 4)


@pytest.mark.parametrize(
    ("how", "says"),
    [("signal", "killed by SIGSEGV"), ("3", "ended with exit code 3"), ("0", "ended without returning")],
)
def test_rank_that_dies_is_a_peer_error(how: str, says: str) -> None:
    with pytest.raises(malt.PeerError, match=f"rank 1 .*{says}") as caught:
        malt.run(rank_work.die, 3, (how,))
    assert caught.value.rank == 1
    if how != "0":
        assert "last words" in str(caught.value)


def test_timeout_names_the_ranks_and_ends_them() -> None:
    with soon(), pytest.raises(malt.TimeoutError, match=r"within 0.3 s\nrank 0, 1 "):
        malt.run(rank_work.wait, 2, timeout=0.3)


CALLER = """
import malt, os, signal, subprocess
def wait():
    child = subprocess.Popen(["sleep", "1000"])
    print("pids", os.getpid(), child.pid, flush=True)
    signal.pause()
if __name__ == "__main__":
    malt.run(wait, 2)
"""


def test_ctrl_c_ends_the_ranks(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(CALLER)
    with launched(command=[sys.executable, str(script)]) as caller:
        caller.wait_for("pids", 2)
        caller.signal(signal.SIGINT)
        assert caller.finish() == -signal.SIGINT
        assert caller.err.endswith("KeyboardInterrupt\n")


def test_from_a_thread_and_twice_at_once() -> None:
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda i=i: results.update({i: malt.run(rank_work.place, 2, (str(i),))}))
        for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [(r, 2, (str(i),), {}) for r in range(2)] for i in range(3)}


def test_result_that_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="returned a lock, which cannot be sent back"):
        malt.run(rank_work.unsendable, 2)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: malt.run(3, 2), TypeError, "run of 3\nexpected a function"),  # type: ignore[arg-type]
        (lambda: malt.run(rank_work.place, 0), ValueError, "n=0\nexpected at least one rank"),
        (lambda: malt.run(rank_work.place, 1.5), TypeError, "n=1.5\nexpected a number of ranks"),  # type: ignore[arg-type]
        (lambda: malt.run(rank_work.place, 2, timeout=-1), ValueError, "timeout=-1"),
        (lambda: malt.run(rank_work.place, 2, (threading.Lock(),)), TypeError, "cannot be sent to the ranks"),
    ],
)
def test_mistakes_are_explained(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


MAIN = """
import os, sys
import malt

class Point:
    def __init__(self, x):
        self.x = x

def move(point):
    return Point(point.x + int(os.environ["MALT_RANK"]))

{guard}
    results = malt.run(move, 2, (Point(5),))
    print([type(p) is Point for p in results], [p.x for p in results], sys.argv[1:])
"""


@pytest.mark.parametrize("cloudpickle", [True, False])
@pytest.mark.parametrize("how", ["script", "module"])
def test_function_of_main(tmp_path: Path, cloudpickle: bool, how: str) -> None:
    if cloudpickle:
        pytest.importorskip("cloudpickle")
    done = _main(tmp_path, 'if __name__ == "__main__":', cloudpickle, how)
    assert (done.stdout, done.stderr) == ("[True, True] [5, 6] ['word']\n", "")


def test_function_of_main_without_guard(tmp_path: Path) -> None:
    done = _main(tmp_path, "if True:", False, "script")
    assert done.returncode == 1
    assert 'if __name__ == "__main__":, or pip install cloudpickle' in done.stderr


def _main(folder: Path, guard: str, cloudpickle: bool, how: str) -> subprocess.CompletedProcess[str]:
    (folder / "some_script.py").write_text(MAIN.format(guard=guard))
    if not cloudpickle:
        (folder / "cloudpickle.py").write_text("raise ImportError")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *(["-m", "some_script"] if how == "module" else [str(folder / "some_script.py")]), "word"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


def test_function_typed_in_without_cloudpickle(tmp_path: Path) -> None:
    (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    code = "import malt\ndef f(): return 1\nmalt.run(f, 2)"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "f or its arguments cannot be sent to the ranks\nit is defined in __main__" in done.stderr
    assert "pip install cloudpickle" in done.stderr


def test_killed_caller_takes_its_ranks_and_their_children(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(CALLER)
    with launched(command=[sys.executable, str(script)]) as caller:
        pids = [int(pid) for pair in caller.wait_for(r"pids (\d+) (\d+)", 2) for pid in pair]
        caller.signal(signal.SIGKILL)
        assert all(wait_for_end(pid) for pid in pids)
