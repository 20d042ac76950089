"""Ranks that keep a part of a sum (graph shards), as processes that stop or are killed."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import jobs
import numpy as np
import pytest
from launching import LONG, run, script

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


ENDS_FIRST = """
import time
v = malt.Vector(np.zeros(64), fold="sum-changes", graph="{graph}", consistency="ssp:0")
for step in range(1 if r == 0 else 4):
    time.sleep(0.2 * (step > 0))  # the computation: longer than a rank sleeps without looking up
    v.array[r] += 1
    v.sync()
assert r == 0 or v.array[1:4].tolist() == [4, 4, 4], v.array
"""


@pytest.mark.parametrize("graph", ["shards", "shards:1", "butterfly:2x2"])
def test_a_rank_whose_program_has_ended_serves_the_others(graph: str) -> None:
    """It closes nothing: it stays in the job at its exit for as long as they need it."""
    with jobs.Job(4, ENDS_FIRST.format(graph=graph), timeout=LONG) as job:
        for rank in job.ranks:
            assert rank.wait() == 0, rank.err.text


ENDS_LONG_BEFORE = """
malt._lib.loading.LONG_WAIT = 0.2
v = malt.Vector(np.zeros(64), fold="sum-changes", graph="shards:1", consistency="async")
v.sync()
if r > 0:
    sys.stdin.readline()
    v.sync()
"""


def test_a_rank_that_has_ended_and_serves_says_for_whom() -> None:
    with jobs.Job(3, ENDS_LONG_BEFORE) as job:
        job.ranks[0].err.wait_for(
            r"(?s)malt\.finalize has waited for \d+ s, and .*rank 1 .*rank 2 .* to close the vectors"
        )
        for rank in job.ranks[1:]:
            rank.say("go")
        assert [rank.wait() for rank in job.ranks] == [0, 0, 0]
        assert job.ranks[0].err.finish().count("malt.finalize") == 1


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
    [("shards:1", 0, "part 0 of the vector is lost with it"), ("shards:1/1", 1, "it passed on a part of the vector")],
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


GOES_ON = """
import json, signal
steps = 400
start = np.zeros(({keepers}, n, steps))  # in each part a place for each change of each rank
v = malt.Vector(start, fold="sum-changes", graph="shards:{keepers}", consistency="{consistency}")
w, seen = v.array, np.zeros(({keepers}, n), int)

def once():
    return bool(np.isin(w, (0, 1)).all() and (np.diff(w) <= 0).all())

print("ready")
assert sys.stdin.readline() == "go\\n"
for step in range(steps):
    if r in {last} and step == {last}[r]:
        signal.pause()
    print("step", step)
    w[:, r, step] += 1
    v.sync()
    assert once(), "a change counts twice, or is missing before others"
    seen = np.maximum(seen, w.sum(2).astype(int))
v.allreduce()
print(json.dumps([seen.tolist(), w.sum(2).astype(int).tolist(), once(), malt.alive()]))
"""


@pytest.mark.parametrize(
    ("seed", "n", "keepers", "consistency"),
    [
        (1, 3, 1, "ssp:0"),
        (2, 3, 2, "ssp:2"),
        (3, 3, 1, "async"),
        (4, 5, 2, "ssp:0"),
        (5, 5, 1, "ssp:2"),
        (6, 5, 3, "async"),
    ],
)
def test_g12_the_others_go_on_without_workers(seed: int, n: int, keepers: int, consistency: str) -> None:
    """Workers are killed at moments that nobody chose. The others have the same changes of theirs, once each."""
    draw = random.Random(seed)
    dead = draw.sample(range(keepers, n), min(2, n - keepers))
    moments = {rank: draw.randrange(1, 200) for rank in dead}
    text = GOES_ON.format(keepers=keepers, consistency=consistency, last={r: at + 150 for r, at in moments.items()})
    with jobs.Job(n, text, env={"MALT_ON_DEATH": "continue"}) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
            rank.say("go")
        for rank, moment in sorted(moments.items(), key=lambda item: item[1]):
            job.ranks[rank].out.wait_for(f"^step {moment}$")
            job.ranks[rank].signal(signal.SIGKILL)
        ended = job.finish()
        lives = [rank for rank in range(n) if rank not in dead]
        assert [rank.process.returncode for rank in ended] == [-9 if r in dead else 0 for r in range(n)], [
            rank.err.text for rank in ended
        ]
        said = {rank: json.loads(ended[rank].out.text.splitlines()[-1]) for rank in lives}
        made = {rank: ended[rank].out.text.count("step ") for rank in dead}
        news = {rank: ended[rank].err.text.count("DeathWarning: rank") for rank in lives}
    assert all(one == said[lives[0]][1:] for one in (said[rank][1:] for rank in lives))
    counts, whole, alive = said[lives[0]][1:]
    assert whole
    assert alive == lives
    assert news == dict.fromkeys(lives, len(dead))
    seen = np.max([said[rank][0] for rank in lives], axis=0)
    for rank in range(n):
        for part in range(keepers):
            if rank in lives:
                assert counts[part][rank] == 400
            else:
                assert seen[part][rank] <= counts[part][rank] <= made[rank]


def test_a_keeper_that_is_killed_ends_a_job_that_goes_on(tmp_path: Path) -> None:
    """The error says which part is lost, and what to do."""
    path = script(
        tmp_path,
        """
        import numpy as np
        import malt
        v = malt.Vector(np.zeros(100), fold="mean-changes", graph="shards:2", consistency="ssp:1")
        while True:
            if r == 1 and v.clock == 10: os.kill(os.getpid(), signal.SIGKILL)
            v.array += 1
            v.sync()
        """,
    )
    done = run("-q", "--on-death", "continue", "-n", "4", path)
    assert done.process.returncode != 0
    assert "rank 1 is dead" in done.err
    assert "part 1 of the vector is lost with it: restart from a checkpoint, or take graph=all" in done.err
    assert "before all ranks had joined" not in done.err
