"""Halton beside all, both sent directly, and the average in lock-step, on slow cables: M2, M3, M6, M7."""

from __future__ import annotations

import functools
import math
import statistics
from dataclasses import dataclass
from typing import Any, NamedTuple

from .job import job
from .learnt import Found, goal_of, reached
from .shown import Program, Shown, among, data

FRAME, PAYLOAD = 1514, 1448
"""Bytes of an Ethernet frame, and how many of a model it carries."""

RUNS = {
    "all": {"consistency": "notify-ack"},
    "halton": {"consistency": "notify-ack", "graph": "halton"},
    "lock-step": {},
}
TURNS, RATIOS = 3, (0.5, 2)


@dataclass(frozen=True, eq=False)
class Task:
    """What is learnt, by how many ranks."""

    what: str
    folder: str
    """In MALT_DATA."""
    ranks: int
    bytes: int
    """Of a model."""
    pace: float
    """Seconds that a step takes."""
    given: dict[str, Any]
    serial: dict[str, Any]
    """For `learn`, of the ranks and of one process."""

    def rate(self, ratio: float) -> str:
        """Return the rate at which a model takes `ratio` times as long as a step to be sent to all others."""
        return f"{8e-6 * (self.ranks - 1) * self.bytes * FRAME / PAYLOAD / self.pace / ratio:.0f}Mbit"


DNA = Task(
    "splice-site", "", 8, 8 * 8424, 0.05,
    {"data": "splice", "every": 250, "passes": 0.5, "points": 20},
    {"data": "splice", "every": 1000, "passes": 0.25, "points": 20},
)  # fmt: skip
NEWS = Task(
    "rcv1-ccat", "rcv1-ccat", 10, 8 * 47_237, 0.2,
    {"every": 1000, "passes": 10, "points": 20},
    {"every": 1000, "passes": 1, "points": 23},
)  # fmt: skip
ADS = Task(
    "a net of 3 layers on clicks of MovieLens, whose loss is 1 - AUC", "movielens-ctr", 8, 4 * 15_077 * 16, 0.2,
    {"data": "clicks", "every": 1024, "passes": 1, "points": 32, "speed": 8},
    {"data": "clicks", "every": 1024, "passes": 0.2, "points": 52, "speed": 8},
)  # fmt: skip


class Reached(NamedTuple):
    """After how many examples of a rank, and seconds, the loss of one process is there, by turn."""

    examples: list[float]
    seconds: list[float]

    def median(self) -> float:
        """Return that of the seconds."""
        return statistics.median(self.seconds)


@functools.cache
def alone(task: Task) -> tuple[float, float]:
    """Return the loss to reach, and after how many examples one process has it."""
    data(task.folder)
    run = job(1, "paced.py", "learn", runs={"": {}}, **task.serial)[""]
    return goal_of(run), reached(run["curve"], goal_of(run))


def raced(task: Task, ratio: float) -> dict[str, Reached]:
    """Return what some turns find, each of which has all ways."""
    goal, _ = alone(task)
    found: dict[str, Found] = job(
        task.ranks, "paced.py", "learn", rate=task.rate(ratio), runs=RUNS, pace=task.pace, turns=TURNS, **task.given
    )
    return {
        way: Reached(*([reached(curve, goal, what) for curve in run["curves"]] for what in (0, 1)))
        for way, run in found.items()
    }


@functools.cache
def races(task: Task) -> dict[float, dict[str, Reached]]:
    """Return them by the ratio of communication to computing."""
    return {ratio: raced(task, ratio) for ratio in RATIOS}


def curve(task: Task) -> str:
    """Say how long each way takes at each ratio; first, which one always wins."""
    found = races(task)
    first = {min((at.median(), way) for way, at in ways.items())[1] for ways in found.values()}
    said = [
        f"at {ratio:g}: " + ", ".join(f"{way} {among(at.seconds)} s" for way, at in ways.items())
        for ratio, ways in found.items()
    ]
    return "; ".join([*(f"{way} is first" for way in first if len(first) == 1), *said]).replace("never s", "never")


def how(task: Task) -> str:
    """Say what ran."""
    return (
        f"net, computing emulated: {task.what}, {task.ranks} hosts, {task.given['every']:,} examples in "
        f"{1e3 * task.pace:.0f} ms; all and halton send directly, in notify-ack; at {RATIOS[0]} and {RATIOS[1]}: "
        "the time that a model takes to all others over that of a step; until the loss of one process, + 1 %; "
        f"medians of {TURNS} turns (extremes)"
    )


def gains(task: Task) -> dict[float, float]:
    """Return how many times sooner halton is there than all, by ratio."""
    return {ratio: over(ways["all"].median(), ways["halton"].median()) for ratio, ways in races(task).items()}


def over(slow: float, quick: float) -> float:
    """Return how many times sooner it is; 0 if never."""
    return slow / quick if math.isfinite(quick) else 0.0


def m2() -> Shown:
    """Race on DNA."""
    gain = gains(DNA)
    return Shown("halton sooner (no figure)", curve(DNA), how(DNA), "holds" if min(gain.values()) > 1 else "in part")


def m3() -> Shown:
    """Race on news, and count examples."""
    ways = races(NEWS)[RATIOS[0]]
    turns = [over(*both) for both in zip(ways["halton"].examples, ways["all"].examples, strict=True)]
    more = statistics.median(turns)
    ours = f"halton needs {among(turns, form='.2f')} times the examples of all; {curve(NEWS)}"
    holds = more > 1 and min(gains(NEWS).values()) > 1
    return Shown("worse per iteration, sooner (no figure)", ours, how(NEWS), "holds" if holds else "in part")


def m6() -> Shown:
    """Race against one process, whose steps take as long."""
    _, examples = alone(ADS)
    serial = examples / ADS.given["every"] * ADS.pace
    fewer = ", ".join(
        f"{way} {among([examples / seen for seen in at.examples])}" for way, at in races(ADS)[RATIOS[0]].items()
    )
    said = [
        f"at {ratio:g}: "
        + ", ".join(f"{way} {among([serial / took for took in at.seconds])} times" for way, at in ways.items())
        for ratio, ways in races(ADS).items()
    ]
    ours = (
        f"times fewer examples of a rank than of one process: {fewer}; times the speed of one process, which takes "
        f"{serial:.1f} s: {'; '.join(said)}"
    )
    best = max(serial / at.median() for ways in races(ADS).values() for at in ways.values())
    return Shown("up to 1.5 times", ours, how(ADS), "holds" if best >= 1.5 else "in part")


def m7() -> Shown:
    """Race on clicks."""
    gain, said = gains(ADS), []
    for ratio, ways in races(ADS).items():
        turns = [over(*both) for both in zip(ways["all"].seconds, ways["halton"].seconds, strict=True)]
        said.append(f"{among(turns, gain[ratio], '.2f')} times at {ratio:g}")
    return Shown(
        "1.1 times", f"{', '.join(said)}; {curve(ADS)}", how(ADS), "holds" if min(gain.values()) >= 1.1 else "in part"
    )


PROGRAMS: dict[str, Program] = {"M2": m2, "M3": m3, "M6": m6, "M7": m7}
