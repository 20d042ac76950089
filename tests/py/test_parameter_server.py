"""Ranks that keep a part of a sum (graph shards), as processes that stop or are killed."""

from __future__ import annotations

import signal

import jobs
import pytest
from launching import LONG

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
    with jobs.Job(4, SERVED, timeout=LONG) as job:
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


PASSED_ON = """
v = malt.Vector(np.zeros(64), fold="sum-changes", graph="shards:1/1", consistency="async")  # 0 to 1 to 2
w = v.array
print("ready")
assert sys.stdin.readline() == "go\\n"
if r != 1:
    for step in range(40):
        w[r] += 1
        v.sync()
    print("went on")
while r == 2 and w[0] < 40:
    v.sync()
v.allreduce()
assert w[0] == w[2] == 40 and w.sum() == 80, w
"""


def test_a_stopped_rank_in_a_tree_passes_on_later() -> None:
    """Nobody waits for it; when it goes on, what it was to pass on arrives, and nothing is lost."""
    with jobs.Job(3, PASSED_ON, timeout=LONG) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[1].signal(signal.SIGSTOP)
        for rank in job.ranks:
            rank.say("go")
        for rank in (job.ranks[0], job.ranks[2]):
            rank.out.wait_for("went on")
        job.ranks[1].signal(signal.SIGCONT)
        for rank in job.ranks:
            assert rank.wait() == 0, rank.err.text


SERVES = """
v = malt.Vector(np.zeros(64), fold="sum-changes", graph="{graph}", consistency="ssp:2")
while r != {stopped}:
    v.array[r] += 1
    try:
        v.sync(timeout=0.2)
    except malt.TimeoutError as error:
        print(error)
    if v.clock == 5:
        print("the other one is in v.allreduce()")
v.allreduce()
"""


@pytest.mark.parametrize(("graph", "stopped"), [("shards:1", 0), ("shards:1/1", 1)])
def test_a_rank_without_which_no_changes_come_is_named(graph: str, stopped: int) -> None:
    """The keeper, or one that passes the sum on: nobody else can tell rank 2 what the others have changed."""
    with jobs.Job(3, SERVES.format(graph=graph, stopped=stopped)) as job:
        job.ranks[2].out.wait_for("the other one")
        job.ranks[stopped].signal(signal.SIGSTOP)
        job.ranks[2].out.wait_for(f"Resume the process of rank {stopped}")


@pytest.mark.parametrize(
    ("graph", "killed", "says"),
    [("shards:1", 0, "a part of the vector is lost with it"), ("shards:1/1", 1, "it passed on a part of the vector")],
)
def test_a_keeper_that_is_killed_ends_the_job(graph: str, killed: int, says: str) -> None:
    """In async no rank waits for it; the error says that a part of the vector is lost, or no longer comes."""
    script = f"""
    v = malt.Vector(np.zeros(64), fold="sum-changes", graph="{graph}", consistency="async")
    while True:
        v.array[r] += 1
        v.sync()
        if v.clock == 5:
            print("under way")
    """
    with jobs.Job(3, script) as job:
        for rank in job.ranks:
            rank.out.wait_for("under way")
        job.ranks[killed].signal(signal.SIGKILL)
        assert job.ranks[2].wait() != 0
        error = job.ranks[2].err.finish()
        assert f"rank {killed} is dead" in error
        assert says in error
