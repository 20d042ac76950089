"""What sums of changes with slack save where steps take uneven time: S1 to S7, S9."""

from __future__ import annotations

import functools
import statistics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .filters import texts
from .job import has_mpi, job
from .shown import Program, Shown, among

Runs = dict[str, dict[str, Any]]

STEP = 0.01  # seconds
SOME = "5 % of steps take four times as long"


def ways(*graphs: str, slacks: tuple[int, ...]) -> Runs:
    """Return options of vectors: lock-step, and changes over these graphs with each slack."""
    return {"bsp": {}} | {
        f"{graph} ssp:{slack}": {"fold": "mean-changes", "graph": graph, "consistency": f"ssp:{slack}"}
        for graph in graphs
        for slack in slacks
    }


class Times:
    """Seconds in calls and in all of loops that took turns."""

    def __init__(self, ranks: int, runs: Runs, turns: int, **given: Any) -> None:
        self.runs = job(ranks, "paced.py", "calls", mpi=True, runs=runs, turns=turns, **given)
        self.others = ["bsp", "mpi"] if has_mpi() else ["bsp"]

    def median(self, name: str, what: str = "inside") -> float:
        """Return the seconds in calls, or in all, of a way."""
        return float(statistics.median(found[what] for found in self.runs[name]))

    def less(self, name: str, what: str = "inside") -> list[float]:
        """Return how many times less than lock-step, and than Open MPI if it is here."""
        return [self.median(other, what) / self.median(name, what) for other in self.others]

    def turns(self, name: str) -> list[list[float]]:
        """Return the same of the calls by turn."""
        own = [found["inside"] for found in self.runs[name]]
        return [[one["inside"] / x for one, x in zip(self.runs[other], own, strict=True)] for other in self.others]

    def said(self, name: str) -> str:
        """Return how the times in the calls, and of the loop in all, compare."""
        calls = " and ".join(map(among, self.turns(name), self.less(name)))
        spans = " and ".join(f"{less:.2f}" for less in self.less(name, "span"))
        return f"{name} {calls} times less in sync, {spans} times less in all"


def beside() -> str:
    """Say what the figures of a way are against."""
    mpi = ", then against Open MPI's allreduce" if has_mpi() else "; Open MPI and mpi4py are not installed here"
    return f"Against v.sync() in bsp{mpi}"


def virtual(ranks: int, steps: int, slack: int, seed: int = 0) -> tuple[float, float, NDArray[np.int64]]:
    """Compute mean time in sync, time in all, and the largest age after each step, for a network that takes no time.

    A sync returns when all have come within the slack. TestG12NoSyncWaitsLongerThanItsSlack finds
    each sync of all, butterfly and shards to return at that moment.
    """
    draw = np.random.default_rng(seed)
    pace = STEP * np.where(draw.random((steps, ranks)) < 0.05, 4, 1) + draw.random((steps, ranks)) * STEP / 1000
    came, left = np.zeros((steps, ranks)), np.zeros((steps + 1, ranks))  # left[c] at clock c
    for c in range(steps):
        came[c] = left[c] + pace[c]
        left[c + 1] = np.maximum(came[c], came[c - slack].max() if c >= slack else 0)
    clocks = np.array([[np.searchsorted(came[:, r], at, "right") for r in range(ranks)] for at in left[1:].min(axis=1)])
    inside = (left[1:] - came).sum(axis=0).mean()
    return float(inside), float(left[-1].max()), np.arange(1, steps + 1) - clocks.min(axis=1)


@functools.cache
def at_once() -> Times:
    """Time calls of 4 MB without any computing between them."""
    runs: Runs = ways("shards", slacks=(0, 8, 255)) | ways("butterfly", slacks=(0,)) | {"copies": {}}
    return Times(4, runs, turns=5, values=1_000_000, pace=0, steps=30, kind="even")


ONCE = "real: 4 ranks, 4 MB, calls without computing between them, 30 calls, medians of 5 turns"


def s1() -> Shown:
    """Compare the hypercube in calls alone, and in loops with stragglers."""
    once = at_once()
    loops, eight = (
        Times(4, ways("butterfly", slacks=(0, 2)), turns=5),
        Times(8, ways("all", "butterfly", slacks=(2,)), turns=5),
    )
    longer = eight.median("butterfly ssp:2", "span") / eight.median("all ssp:2", "span")
    slower = max(1 / less for less in once.less("butterfly ssp:0"))
    ours = (
        f"Calls alone: butterfly ssp:0 takes {slower:.1f} times as long as the faster of the others. {beside()}, 4 KB "
        f"where {SOME}: {loops.said('butterfly ssp:0')}; {loops.said('butterfly ssp:2')}. 8 ranks on butterfly ssp:2 "
        f"take {longer:.2f} times as long in all as on all ssp:2; in virtual time as long, which is "
        f"{at_best(8, 2, 1):.2f} times less than in step"
    )
    how = f"{ONCE}; real, emulated with 8: 200 steps of 10 ms, in which ranks sleep (extremes of 5 turns), busy machine"
    better = min(loops.less("butterfly ssp:2")) > 1 / 1.75
    return Shown("1.75 times slower at best", ours, how, "does not hold" if better else "holds")


def s2() -> Shown:
    """Find the slack from which shards take less time."""
    once = at_once()
    names = [f"shards ssp:{slack}" for slack in (0, 8, 255)]
    copies = once.median("shards ssp:8") / once.median("copies")
    real = "; ".join(f"{name} {' and '.join(f'{less:.2f}' for less in once.less(name))}" for name in names)
    step = virtual(32, 200, 0)[0]
    saved = ", ".join(f"{step / max(virtual(32, 200, slack)[0], 1e-9):.1f} at {slack}" for slack in (1, 2, 4, 8))
    ours = (
        f"{beside()}, calls alone, times as fast: {real}. Where {SOME}, 32 ranks are by so many times less "
        f"in sync than in lock-step: {saved}. A sync on shards ssp:8 takes {copies:.1f} times as long as its copies "
        "alone, of 4.75 arrays"
    )
    how = f"{ONCE}; virtual: 32 ranks, 200 steps, a network that takes no time"
    holds = all(less > 1 for name in names[1:] for less in once.less(name))
    return Shown("from slack 8, asynchronous from 255", ours, how, "holds" if holds else "in part")


def at_best(ranks: int, slack: int, what: int = 0) -> float:
    """Return how many times less time a slack leaves in sync, or in all: the median of 12 draws of the slow steps."""
    draws = [(virtual(ranks, 400, 0, n)[:2], virtual(ranks, 400, slack, n)[:2]) for n in range(12)]
    return statistics.median(step[what] / late[what] for step, late in draws)


SLACKS = (2, 4, 255)
ASKED = {4: (2.5, 6), 8: (3, 8)}


def s3() -> Shown:
    """Time loops in which some steps are slow."""
    said, holds = [], True
    for ranks, asked in ASKED.items():
        times = Times(ranks, ways("all", "shards", slacks=SLACKS), turns=3)
        said.append(f"{ranks} ranks: " + "; ".join(times.said(name) for name in times.runs if "ssp" in name))
        holds = holds and all(min(times.less(f"all ssp:{s}")) >= x for s, x in zip(SLACKS, asked, strict=False))
    steady = Times(4, ways("all", slacks=(4,)), turns=3, steps=60, kind="one")
    bound = "; ".join(f"{ranks} ranks {at_best(ranks, 2):.1f} and {at_best(ranks, 4):.1f} times" for ranks in ASKED)
    ours = (
        f"{beside()}: {'. '.join(said)}. In virtual time, at ssp:2 and ssp:4: {bound}. "
        f"With one rank always 5 times slower {steady.said('all ssp:4')}"
    )
    how = (
        f"real and emulated: 4 KB, 200 steps of 10 ms, in which ranks sleep, {SOME}; medians of 3 turns (extremes), "
        "busy machine; virtual: 400 steps, calls that take no time, medians of 12 draws of the slow steps"
    )
    paper = "57.9 % less than MPI (2.4 times) and 59.3 % (2.5 times), at slack 255 in 200 calls: no rank can wait"
    return Shown(paper, ours, how, "holds" if holds else "in part")


def s4() -> Shown:
    """Compare shards in step."""
    less = at_once().less("shards ssp:0")
    ours = f"{beside()}, shards ssp:0 is {' and '.join(f'{x:.2f}' for x in less)} times as fast"
    return Shown("faster than both", ours, ONCE, "holds" if min(less) > 1 else "does not hold")


def s5() -> Shown:
    """Compute the ages of a long run."""
    ages = virtual(32, 200, 255)[2]
    first = [int(np.argmax(ages >= age)) + 1 if (ages >= age).any() else None for age in (4, 8, 12)]
    ours = f"the oldest changes are 4, 8 and 12 clocks old at steps {', '.join(map(str, first))}; {ages.max()} at most"
    how = f"virtual: 32 ranks, slack 255, 200 steps, {SOME}; their stragglers are not known, so only the slope compares"
    return Shown("age 8 at iteration 35 and 93, 20 at 125 and 172", ours, how, "in part")


def s6() -> Shown:
    """Compare the time to an equal error of a factorisation."""
    options = {"fold": "sum-changes", "consistency": ""}
    runs = {name: {**options, "consistency": name} for name in ("ssp:0", "ssp:255")}
    said, gains = [], []
    for kind, what in (("some", SOME), ("one", "one rank is always 5 times slower")):
        found = job(4, "paced.py", "factor", runs=runs, passes=6, pace=0.02, kind=kind, turns=5)
        goal = 1.01 * max(run["rmse"] for run in found.values())
        reached = {}
        for name, run in found.items():
            at, rmse = np.array(run["curve"]).T
            reached[name] = float(np.interp(-goal, -rmse, at))
        gains.append(1 - reached["ssp:255"] / reached["ssp:0"])
        errors = " and ".join(f"{run['rmse']:.4f}" for run in found.values())
        said.append(f"{what}: {gains[-1]:.0%} sooner, last errors {errors}")
    how = (
        "emulated: 4 ranks, MovieLens, 6 passes, 50 batches of 64 in a step of 20 ms; seen by the last rank; "
        "medians of 5 turns"
    )
    return Shown("10 % sooner", "; ".join(said), how, "holds" if gains[0] >= 0.1 else "in part")


def s7() -> Shown:
    """Compare losses of an SVM, and errors of a factorisation."""
    slacks = (0, 2, 4, 8)
    runs = {
        f"{fold} {slack}": {"fold": fold, "consistency": f"ssp:{slack}"}
        for fold in ("mean-changes", "mean")
        for slack in slacks
    } | {"sum-changes 0": {"fold": "sum-changes", "consistency": "ssp:0"}}
    found = job(4, "paced.py", "learn", runs=runs, pace=STEP, kind="some", turns=5)
    loss = {name: run["loss"] for name, run in found.items()}
    each = {fold: ", ".join(f"{loss[f'{fold} {slack}']:.4f}" for slack in slacks) for fold in ("mean-changes", "mean")}
    apart = max(abs(loss[f"mean-changes {slack}"] - loss["mean-changes 0"]) for slack in slacks)
    pays = max(loss[f"mean {slack}"] - loss["mean 0"] for slack in slacks)
    less = [found["mean-changes 0"]["inside"] / found[f"mean-changes {slack}"]["inside"] for slack in (2, 4)]
    sums = {"sum-changes": {"fold": "sum-changes", "consistency": "async"}}
    errors = [
        job(n, "paced.py", "factor", runs=sums, pace=0.03 * (n > 1), turns=4 * (n > 1) + 1)["sum-changes"]["rmse"]
        for n in (1, 4)
    ]
    ours = (
        f"SVM on {texts()}: with slack 0, 2, 4, 8 changes end at {each['mean-changes']}"
        f", at most {apart:.4f} from slack 0, and take {less[0]:.1f} and {less[1]:.1f} times less in sync at 2 and 4; "
        f"the mean of models {each['mean']}, up to {pays:.4f} more; sum-changes with slack 0, at the same rate, "
        f"{loss['sum-changes 0']:.4f}. "
        f"Factorisation in async: RMSE {errors[1]:.4f}, one process {errors[0]:.4f}"
    )
    how = (
        f"emulated: 4 ranks, {SOME}, λ 1e-4, a sync every 100 texts, two passes; "
        "MovieLens, 20 passes, 50 batches of 64 in an even step of 30 ms; medians of 5"
    )
    holds = apart <= 0.0005 and abs(errors[1] - errors[0]) <= 0.002
    return Shown("minimal effect", ours, how, "holds" if holds else "in part")


def s9() -> Shown:
    """Look in the arrays which changes are in them."""
    graphs, slacks = ("all", "butterfly", "shards"), (1, 2, 4)
    runs = ways(*graphs, slacks=slacks)
    del runs["bsp"]
    oldest = job(8, "paced.py", "ages", runs=runs)
    said = [f"{graph} {', '.join(str(oldest[f'{graph} ssp:{s}']) for s in slacks)}" for graph in graphs]
    exact = all(oldest[f"{graph} ssp:{slack}"] <= slack for graph in graphs for slack in slacks)
    ours = f"oldest changes with slack {', '.join(map(str, slacks))}: {'; '.join(said)}, and none twice or left out"
    how = f"emulated: 8 ranks, each adds 1 in another place at each step, {SOME}"
    paper = "no data older than the slack; as printed, each stage adds the slack again (3, 6, 12 on 8 nodes)"
    return Shown(paper, ours, how, "holds" if exact else "does not hold")


PROGRAMS: dict[str, Program] = {"S1": s1, "S2": s2, "S3": s3, "S4": s4, "S5": s5, "S6": s6, "S7": s7, "S9": s9}
