"""``malt run --on-death replace``: a new process takes the place of a rank that died."""

from __future__ import annotations

import os
import re
import signal
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from launching import Launcher, run, script

from malt._cli.restarts import Restarts
from malt._ranks.launch import Job
from malt._ranks.rank import Outcome

REPLACE = ("-q", "--on-death", "replace")

# Ends ten syncs after all take part again, and prints after each sync what both models are.
TRAIN = """
import hashlib
start = int(os.environ.get("MALT_RESTART", "0"))
import numpy as np
import malt
malt.init()
rate = malt.broadcast(0.5, root=0)
least = malt.allreduce(float(r), "min")
v = malt.Vector(np.zeros(1000), consistency="{rule}")
w = malt.Vector(np.ones(10), name="w", start="own")
back, steps = None, 0
while back is None or v.clock < back + 10:
    steps += 1
    {before}
    v.array[:] += rate * (np.arange(1000.0) * (r + 1) - v.array)
    w.array[:] += r + 1
    v.sync()
    w.sync()
    if back is None and malt.generation() > {past} and len(malt.alive()) == malt.size():
        back = v.clock
    print("at", v.clock, hashlib.md5(v.array.tobytes() + w.array.tobytes()).hexdigest(), flush=True)
print("done", v.clock - w.clock, malt.alive(), flush=True)
"""

KILL = "os.kill(os.getpid(), signal.SIGKILL)"

pytestmark = pytest.mark.usefixtures("nothing_left")


def program(before: str, rule: str = "bsp", past: int = 1) -> str:
    """Return the program; it ends when all take part in a generation later than ``past``."""
    return TRAIN.format(before=before, rule=rule, past=past)


def train(tmp_path: Path, text: str, rule: str = "bsp") -> Launcher:
    """Run the program; all ranks have to end well, with the same models after each sync in lock-step."""
    done = run(*REPLACE, "--max-restarts", "100", "-n", "3", script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    assert sorted(re.findall(r"^\[\d\] done.*$", done.out, re.M)) == [f"[{r}] done 0 [0, 1, 2]" for r in range(3)]
    models = defaultdict(set)
    for clock, model in re.findall(r"^\[\d\] at (\d+) (\w+)$", done.out, re.M):
        models[int(clock)].add(model)
    if rule == "bsp":
        assert [clock for clock, seen in models.items() if len(seen) > 1] == []
    assert sorted(models) == list(range(1, len(models) + 1))  # no sync is lost, and none is made twice
    return done


ONCE = f"if r == 1 and v.clock == 5 and not start: {KILL}"


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_was_killed_takes_part_again(tmp_path: Path, rank: int) -> None:
    done = train(tmp_path, program(ONCE.replace("r == 1", f"r == {rank}")))
    assert f"malt run: rank {rank} is started again\n" in done.err
    assert f"malt run: rank {rank} takes part again\n" in done.err
    assert "rank 0 died" not in done.err


def test_two_ranks_at_once_and_one_again(tmp_path: Path) -> None:
    kill = f"if r and not start and v.clock == 5 or r == 1 and 0 < start < 3 and steps == 3: {KILL}"
    done = train(tmp_path, program(kill, past=4))
    assert done.err.count("rank 1 takes part again") == 2, done.err
    assert done.err.count("rank 2 takes part again") == 1, done.err


def test_ranks_that_are_ahead_of_each_other(tmp_path: Path) -> None:
    train(tmp_path, program(ONCE, "ssp:2"), "ssp:2")


@pytest.mark.parametrize("where", ["malt.init()", "v = malt.Vector", "back, steps"])
@pytest.mark.parametrize("end", [KILL, "os._exit(0)"])
def test_a_process_that_dies_while_it_joins_changes_nothing(tmp_path: Path, where: str, end: str) -> None:
    done = train(tmp_path, program(ONCE).replace(where, f"if start == 1: {end}\n{where}", 1))
    assert done.err.count("rank 1 is started again") == 2, done.err
    assert done.err.count("rank 1 takes part again") == 1, done.err


@pytest.mark.parametrize("where", ["v = malt.Vector", "back, steps"])
def test_a_process_that_joins_does_not_go_on_alone(tmp_path: Path, where: str) -> None:
    """The last rank that has the values dies while the process joins, which would begin from nothing."""
    pid = tmp_path / "pid"
    ended = f"if start == 1: os.kill(int(open({str(pid)!r}).read()), signal.SIGKILL)\n"
    text = program(ONCE.replace("r == 1", "r == 0"))
    text = text.replace(
        "malt.init()", f"if r == 1 and not start: print(os.getpid(), file=open({str(pid)!r}, 'w'))\nmalt.init()", 1
    )
    done = run(*REPLACE, "-n", "2", script(tmp_path, text.replace(where, ended + where, 1)))
    assert done.process.returncode == 128 + signal.SIGKILL, done.err
    assert "takes part again" not in done.err
    assert "done" not in done.out


# A rank dies after its last sync, in which the other one is too, which ends when the rank is started again.
END = f"""
start = int(os.environ.get("MALT_RESTART", "0"))
if start: open({{fifo!r}}, "w").close()
import numpy as np
import malt
v = malt.Vector(np.zeros(10))
v.sync()
if r == {{rank}}: {KILL}
open({{fifo!r}}).close()
"""


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_started_again_when_the_job_has_ended(tmp_path: Path, rank: int) -> None:
    fifo, logs = tmp_path / "fifo", tmp_path / "logs"
    os.mkfifo(fifo)
    text = END.format(fifo=str(fifo), rank=rank)
    done = run(*REPLACE, "--log-dir", str(logs), "-n", "2", script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    said = [line for line in done.err.splitlines() if line.startswith(f"malt run: rank {rank} ")]
    dead = f"malt run: rank {rank} was killed by SIGKILL after .* s; rank {1 - rank} is left"
    assert re.fullmatch(dead, said[0]), done.err
    assert said[1:3] == [
        f"malt run: rank {rank} is started again",
        f"malt run: rank {rank} does not take part again: the job has ended",
    ]
    assert (said[3:] != []) == ("rank 0 died: after that" in done.err) == (rank == 0), done.err
    assert "Traceback" not in done.err
    log = (logs / f"rank-{rank}.log").read_text()
    assert log.endswith(
        f"malt.StateError: malt: the job had ended before rank {rank} could join it again\n"
        "this process was to take the place of one that died; no other rank is left\n"
        "Read what the other ranks printed: the result, if they ended well, is theirs.\n"
    )


# Each process but rank 0 may die in any step of its life, by dice of its own, until the job has seen 12
# generations.
DICE = f"""
import random
dice = random.Random({{seed}} * 1000 + r * 100 + int(os.environ.get("MALT_RESTART", "0")))
def roll():
    if r and dice.random() < 0.05: {KILL}
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_that_die_at_random(tmp_path: Path, seed: int) -> None:
    text = program("if malt.generation() < 12: roll()", past=11)
    text = text.replace("malt.init()\n", "malt.init()\nif start: roll()\n", 1)
    text = text.replace("w = malt", "if start: roll()\nw = malt", 1)
    text = text.replace("    v.sync()\n", "    v.sync()\n    if malt.generation() < 12: roll()\n", 1)
    train(tmp_path, DICE.format(seed=seed) + text)


def test_a_rank_that_dies_too_often_is_not_started_again() -> None:
    notes: list[str] = []
    starts: list[tuple[int, int]] = []
    with Job(lambda *_: None) as job:
        terminal = SimpleNamespace(note=notes.append)
        Restarts(job, terminal, lambda *start: starts.append(start), most=2)  # type: ignore[arg-type]
        ranks = [Outcome(number) for number in (1, 2, 1, 1, 2)]
        for rank in ranks:
            job.replace(rank)  # type: ignore[arg-type]
    assert starts == [(1, 1), (2, 2), (1, 3)]
    assert notes[-1] == (
        "rank 1 is not started again: it has been 2 times (--max-restarts); nor is any other rank from now on"
    )


@pytest.mark.parametrize(
    ("made", "what"),
    [
        ('malt.Vector(np.zeros(10), consistency="async")', "a vector with "),
        ('malt.Vector(np.zeros(10), graph="ring")', "a vector with "),
        ("malt.Segment(10)", "a segment does not go with on_death=replace"),
        ("malt.deal(range(10))", "malt.deal does not go with on_death=replace"),
    ],
)
def test_what_cannot_be_replaced_is_refused_at_the_start(tmp_path: Path, made: str, what: str) -> None:
    done = run(*REPLACE, "-n", "3", script(tmp_path, f"import numpy as np, malt\n{made}"))
    assert done.process.returncode == 1
    assert "UnsupportedError" in done.err
    assert what in done.err


def test_on_several_machines_it_is_refused(tmp_path: Path) -> None:
    done = run("--on-death", "replace", "-H", "localhost:2", script(tmp_path, "import malt"))
    assert done.process.returncode == 2
    assert "--on-death replace is for ranks of one machine" in done.err
