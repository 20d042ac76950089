"""Ranks that keep a part of a sum (graph shards), as processes that stop or are killed."""

from __future__ import annotations

import signal

import jobs

SERVED = """
v = malt.Vector(np.zeros(64), fold="sum-changes", graph="shards:1", consistency="async")
w = v.array
if r > 0:
    print("ready")
    assert sys.stdin.readline() == "go\\n"
if r in (1, 2):
    while w[3 - r] < 40 or w[r] < 40:
        w[r] += 1
        v.sync()
    print("saw the other")
v.allreduce()
assert w[1] >= 40 and w[2] >= 40 and w.sum() == w[1] + w[2], w
"""


def test_a_stopped_worker_holds_nobody_up() -> None:
    """What the others change comes to each other through the server, and to the stopped rank later."""
    with jobs.Job(4, SERVED, timeout=jobs.LONG) as job:
        for rank in job.ranks[1:]:
            rank.out.wait_for("ready")
        job.ranks[3].signal(signal.SIGSTOP)
        for rank in job.ranks[1:]:
            rank.say("go")
        for rank in job.ranks[1:3]:
            rank.out.wait_for("saw the other")
        job.ranks[3].signal(signal.SIGCONT)
        for rank in job.ranks:
            assert rank.wait() == 0, rank.err.text


def test_a_keeper_that_is_killed_ends_the_job() -> None:
    """In async no rank waits for it; the error says that a part of the vector is lost."""
    script = """
    v = malt.Vector(np.zeros(64), fold="sum-changes", graph="shards:1", consistency="async")
    while True:
        v.array[r] += 1
        v.sync()
        if v.clock == 5:
            print("under way")
    """
    with jobs.Job(3, script) as job:
        for rank in job.ranks:
            rank.out.wait_for("under way")
        job.ranks[0].signal(signal.SIGKILL)
        for rank in job.ranks[1:]:
            assert rank.wait() != 0
            error = rank.err.finish()
            assert "rank 0 is dead" in error
            assert "a part of the vector is lost with it" in error
