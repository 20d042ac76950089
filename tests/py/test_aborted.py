"""A rank that ends after a failure of its own is dead to the others; one that ends with 0 has left."""

from __future__ import annotations

import signal

import jobs
import pytest

# Rank 1 ends in some way; the others go on, and say what they make of it.
ENDS = """
v = malt.Vector(np.zeros(3))
call = {call}
call()
if r == 1:
    {end}
try:
    for _ in range(20):
        call()
    print("through")
except malt.Error as e:
    print(type(e).__name__, getattr(e, "rank", None), getattr(e, "kind", None), e)
"""


@pytest.mark.parametrize("call", ["v.sync", "malt.barrier"])
@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(3)", 3), ("raise SystemExit(2)", 2), ("sys.exit('in words')", 1), ("os.kill(os.getpid(), 15)", -15)],
)
def test_a_status_other_than_0_is_a_death(call: str, end: str, code: int) -> None:
    with jobs.Job(3, ENDS.format(call=call, end=end)) as job:
        ranks = job.finish()
        assert ranks[1].process.returncode == code
        for rank in (ranks[0], ranks[2]):
            kind = "failed" if code > 0 else "ended"
            assert rank.out.text.startswith(f"PeerError 1 {kind} malt: "), rank.out.text
            assert code < 0 or f"rank 1 is dead: it has ended with exit code {code}" in rank.out.text


@pytest.mark.parametrize(
    ("call", "said"), [("v.sync", "through"), ("malt.barrier", "StateError None None malt: rank 1 has ended")]
)
def test_an_early_end_with_0_is_in_good_order(call: str, said: str) -> None:
    outputs = jobs.run(3, ENDS.format(call=call, end="sys.exit()"))
    assert outputs[1] == ""
    assert outputs[0].startswith(said)
    assert outputs[2].startswith(said)


@pytest.mark.parametrize("code", [0, 1])
def test_a_rank_that_caught_a_peer_error_does_not_leave_in_good_order(code: int) -> None:
    """Rank 1 alone gets to see the death of rank 2, and it is its end that rank 0 hears of."""
    with jobs.Job(
        3,
        f"""
        v = malt.Vector(np.zeros(3))
        print("ready")
        if r == 2:
            sys.stdin.readline()
        if r == 1:
            try:
                malt.barrier()
            except malt.PeerError as e:
                print("caught", e.rank)
                sys.exit({code})
        sys.stdin.readline()
        try:
            malt.barrier()
        except malt.PeerError as e:
            print("heard", e.rank, e.kind, e)
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[2].signal(signal.SIGKILL)
        assert job.ranks[1].wait() == code
        assert "caught 2" in job.ranks[1].out.finish()
        job.ranks[0].say("go on")
        job.finish()
        assert "heard 2 ended malt: rank 2 is dead" in job.ranks[0].out.text, job.ranks[0].err.text


def test_a_rank_that_leaves_after_a_timeout_is_dead() -> None:
    with jobs.Job(
        2,
        """
        v, w = malt.Vector(np.zeros(3)), malt.Vector(np.zeros(3))
        w.sync()
        if r == 1:
            try:
                v.sync(timeout=0.1)
            except malt.TimeoutError:
                w.scatter(), w.gather()       # another object: no sign that v is right again
                sys.exit()
        w.scatter(), w.gather()
        sys.stdin.readline()
        try:
            v.sync(), v.sync()
        except malt.PeerError as e:
            print(e.rank, e.kind, e)
        """,
    ) as job:
        assert job.ranks[1].wait() == 0
        job.ranks[0].say("go on")
        job.finish()
        assert "1 failed malt: rank 1 is dead: it has left after a timeout" in job.ranks[0].out.text, job.ranks[
            0
        ].err.text
        assert "it has left after a timeout: v.sync timed out" in job.ranks[0].out.text


def test_a_timeout_that_was_made_good_is_forgotten() -> None:
    with jobs.Job(
        2,
        """
        v = malt.Vector(np.zeros(3))
        if r == 1:
            try:
                v.sync(timeout=0.1)
            except malt.TimeoutError:
                print("late", flush=True)
                v.gather()
                malt.barrier()
                sys.exit()
        sys.stdin.readline()
        v.sync()
        malt.barrier()
        for _ in range(20):
            v.sync()
        print("through")
        """,
    ) as job:
        job.ranks[1].out.wait_for("late")
        job.ranks[0].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], job.ranks[0].err.text
        assert "through" in job.ranks[0].out.text
