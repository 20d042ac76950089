"""Parameter servers with trees and filters, on a network that ``malt sim`` makes: P1, P6 to P8, P10 to P13."""

from __future__ import annotations

import functools
import re
import statistics
import subprocess
from pathlib import Path
from shutil import which

from .filters import learns, of_one
from .job import job
from .shown import Program, Shown, among
from .sparse import median, ratio


def computed() -> str:
    """Return how many times faster sums travel through trees where each message takes the same time."""
    test = ["go", "test", "./graphs", "-run=TestTreesSpreadSumsFaster", "-v", "-count=1"]
    done = subprocess.run(test, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    return str(re.findall(r"(\S+) times", done.stdout)[0])


def p6() -> Shown:
    """Compare trees with sending to all."""
    times = job(10, "ranks.py", "states", rate="50Mbit", size=250_000, turns=5)["times"]
    less = ratio(times, "direct", "trees")
    trees, direct = median(times["trees"]), median(times["direct"])
    ours = f"{less:.1f} times faster: a sum takes {trees} through shards:2/2, {direct} through shards:2"
    if which("go"):
        ours += f"; {computed()} times with 10 servers and 40 workers, through shards:10/2"
    how = (
        "net: 2 servers and 8 workers at 50 Mbit/s, 1 MB; the servers change the sum all the time, "
        "and the worker that gets the fewest counts; medians of 5 runs of 10 s (quartiles); virtual with 50 hosts: "
        "TestTreesSpreadSumsFaster of graphs, in which a host sends and gets one part at a time"
    )
    paper = "1.7, 1.6 and 1.0 times, in one tree for all servers"
    return Shown(paper, ours, how, "holds" if less >= 1.7 else "in part")


def p1() -> Shown:
    """Find what slack leaves of the communication, where it takes as long as theirs in step."""
    found = job(
        10, "flowed.py", "shares", rate="50Mbit", slacks=["ssp:0", "ssp:4", "ssp:16"], steps=30, turns=5, ratio=5.7
    )
    times = {consistency: statistics.median(shares) for consistency, shares in found.items()}
    ours = ", ".join(f"{consistency} {among(shares)} times" for consistency, shares in found.items())
    how = (
        f"net, computing emulated: {learns()}, 30 steps, 2 servers without a filter and 8 workers at 50 Mbit/s; "
        "a step computes for so long that they communicate 5.7 times as long in ssp:0; medians of 5 runs (extremes)"
    )
    return Shown("5.7 times in step, 3.6 in ssp:4, 2.3 in ssp:16", ours, how, of_one(times["ssp:16"] < times["ssp:4"]))


def p7() -> Shown:
    """Compare trees and a filter with sending all to all."""
    times = job(10, "flowed.py", "spread", rate="10Mbit", held="dvf:0.1", turns=5)
    less = ratio(times, "direct", "flow")
    both, neither = median(times["flow"]), median(times["direct"])
    ours = f"{less:.1f} times faster: a sum takes {both} with both, {neither} with neither"
    how = (
        f"net: 2 servers and 8 workers at 10 Mbit/s, shards:2/2 with dvf:0.1, {learns()}; the servers learn all "
        "the time, and the worker that gets the fewest sums counts; medians of 5 runs of 10 s (quartiles)"
    )
    return Shown("4.8, 3.6 and 2.3 times", ours, how, of_one(less >= 2.3))


HELD, RATIO = "dvf:0.1", 3.6
"""The filter, and how many times longer plain servers in step communicate than they compute."""

THEIRS = {"logistic regression": 12, "matrix factorisation": 1.5, "AlexNet": 5.7}
"""That of their programs: it follows from what they say of communication and of all, for two of them."""

WAYS = ("in step", "plain", "flow", "late flow")
SWEEP = ((RATIO, "", 3, (*WAYS, "average")), *((at, "", 1, WAYS) for at in THEIRS.values()))
LOADS = ((RATIO, "fixed", 3, ("in step", "late flow")), (RATIO, "dynamic", 3, ("in step", "later flow")))

Seconds = dict[str, tuple[list[float], ...]]


@functools.cache
def trained(*settings: tuple[float, str, int, tuple[str, ...]]) -> list[Seconds]:
    """Return by turn the seconds of each way in all and in `sync`, until the loss of servers in step, per setting."""
    found = job(10, "flowed.py", "compared", rate="50Mbit", held=HELD, settings=settings)
    return [
        {way: tuple([point[i] for point in points] for i in (0, 1)) for way, points in ways.items()} for ways in found
    ]


def gain(slow: list[float], quick: list[float]) -> tuple[list[float], float]:
    """Return how many times less the quick one takes, by turn, and by the medians."""
    return [x / y for x, y in zip(slow, quick, strict=True)], statistics.median(slow) / statistics.median(quick)


TRAINED = (
    f"net, computing emulated: {learns()}, 2 servers and 8 workers at 50 Mbit/s; Parameter Flow is shards:2/2 with "
    "{} in {}; until the loss of plain servers in step (ssp:0) after 30 steps, + 1 %"
)


def compared(ways: tuple[str, str], paper: tuple[float, float, float], *, in_sync: bool = False) -> Shown:
    """Compare Parameter Flow with other servers, and say how the average of all ranks in lock-step does."""
    at, *others = trained(*SWEEP)
    base, flow = ways
    slack = "ssp:16" if flow == "late flow" else "ssp:0"
    less = {
        program: gain(found[base][in_sync], found[flow][in_sync])[1]
        for program, found in zip(THEIRS, others, strict=True)
    }
    curve = ", ".join(f"{times:.1f} at {THEIRS[program]:g}, that of their {program}" for program, times in less.items())
    ours = (
        f"{among(*gain(at[base][in_sync], at[flow][in_sync]))} times less at {RATIO}: Parameter Flow "
        f"{among(at[flow][in_sync])} s, servers without it{' in step' * (base == 'in step')} "
        f"{among(at[base][in_sync])} s; the average of all 10 ranks in lock-step {among(at['average'][in_sync])} s. "
        f"Times less elsewhere: {curve}"
    )
    how = (
        f"{TRAINED.format(HELD, slack)}; at {RATIO} and so on: the time in which those communicate over that in which "
        "they compute, for AlexNet from P1, for the others from P8 to P10; medians of 3 turns (extremes), elsewhere one"
    )
    said = ", ".join(f"{times:g} of {program}" for times, program in zip(paper, THEIRS, strict=True))
    return Shown(said, ours, how, of_one(all(ours >= x for ours, x in zip(less.values(), paper, strict=True))))


def p8() -> Shown:
    """Compare the seconds in sync, in step."""
    return compared(("in step", "flow"), (3.8, 4.1, 5.4), in_sync=True)


def p10() -> Shown:
    """Compare all seconds, in step."""
    return compared(("in step", "flow"), (2.7, 1.4, 2.2))


def p11() -> Shown:
    """Compare all seconds, with slack."""
    return compared(("plain", "late flow"), (2.5, 1.3, 3.5))


def p12() -> Shown:
    """Compare it with slack with servers in step."""
    return compared(("in step", "late flow"), (4.3, 1.7, 3.2))


def p13() -> Shown:
    """Compare them beside other flows."""
    fixed, dynamic = trained(*LOADS)
    both = gain(fixed["in step"][0], fixed["late flow"][0]), gain(dynamic["in step"][0], dynamic["later flow"][0])
    gains = [middle for _, middle in both]
    ours = (
        f"{among(*both[0])} times sooner than servers in step beside a fixed flow, {among(*both[1])} times beside a "
        f"dynamic one, with {HELD}:1"
    )
    how = (
        f"{TRAINED.format(HELD, 'ssp:16')}; those communicate {RATIO} times longer than they compute, alone; each host "
        "sends to the next one as fast as it can: always, or every other second; medians of 3 turns (extremes)"
    )
    paper = "4.5, 2.6, 3.8 times beside a fixed load, 6.1, 3.5, 8.2 beside a dynamic one, of Spark"
    return Shown(paper, ours, how, of_one(gains[0] >= 2.6 and gains[1] >= 3.5))


PROGRAMS: dict[str, Program] = {
    "P1": p1, "P6": p6, "P7": p7, "P8": p8, "P10": p10, "P11": p11, "P12": p12, "P13": p13,
}  # fmt: skip
