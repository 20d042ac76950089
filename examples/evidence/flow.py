"""Parameter servers with trees and filters, on a network that ``malt sim`` makes: P1, P6 to P8, P10, P11, P12."""

from __future__ import annotations

import functools
import statistics

from .filters import has_texts, learns, of_one
from .job import job
from .shown import Program, Shown
from .sparse import Times, median, ratio


def p6() -> Shown:
    """Compare trees with sending to all."""
    times = job(10, "ranks.py", "states", rate="50Mbit", size=250_000, turns=5)["times"]
    less = ratio(times, "direct", "trees")
    trees, direct = median(times["trees"]), median(times["direct"])
    ours = f"{less:.1f} times faster: a sum takes {trees} through shards:2/2, {direct} through shards:2"
    how = (
        "net: 2 servers and 8 workers at 50 Mbit/s, 1 MB; the servers change the sum all the time, "
        "and the worker that gets the fewest counts; medians of 5 runs of 10 s (quartiles)"
    )
    paper = "1.7, 1.6 and 1.0 times, in one tree for all servers"
    return Shown(paper, ours, how, "holds" if less >= 1.7 else "in part")


def p1() -> Shown:
    """Find what slack leaves of the communication, where it takes as long as theirs in step."""
    found = job(
        10, "flowed.py", "shares", rate="50Mbit", slacks=["ssp:0", "ssp:4", "ssp:16"], steps=30, turns=3, ratio=5.7
    )
    times = {consistency: statistics.median(shares) for consistency, shares in found.items()}
    ours = ", ".join(f"{consistency} {share:.1f} times" for consistency, share in times.items())
    how = (
        f"net, computing emulated: {learns()}, 30 steps, 2 servers without a filter and 8 workers at 50 Mbit/s; "
        "a step computes for so long that they communicate 5.7 times as long in ssp:0; medians of 3 runs"
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


@functools.cache
def trained(consistency: str) -> tuple[Times, Times, dict[str, float]]:
    """Return the seconds of each way in all and in `sync`, and its loss."""
    found = job(10, "flowed.py", "compared", rate="50Mbit", held="dvf:0.3", consistency=consistency, steps=30, turns=3)
    took, spent = ({way: [run[i] for run in runs] for way, runs in found.items()} for i in (0, 1))
    return took, spent, {way: statistics.median(run[2] for run in runs) for way, runs in found.items()}


def trains(consistency: str) -> str:
    """Say what ran."""
    there = "rcv1-ccat" if has_texts() else "texts that are made up"
    return (
        f"net, computing emulated: logistic regression on {there}, 30 steps, 2 servers and 8 workers at 50 Mbit/s, "
        f"{consistency}; plain servers in step communicate 3.6 times as long as they compute; "
        "Parameter Flow is shards:2/2 with dvf:0.3; medians of 3 runs"
    )


def compared(consistency: str, base: str, paper: str, least: float, *, in_sync: bool = False) -> Shown:
    """Compare Parameter Flow with other servers, and say how the average of all ranks in lock-step does."""
    took, spent, loss = trained(consistency)
    times = spent if in_sync else took
    less = ratio(times, base, "flow")
    named = {"flow": "Parameter Flow", base: "servers without it" if base == "plain" else "servers in step without it"}
    parts = [f"{what} {statistics.median(times[way]):.1f} s, loss {loss[way]:.4f}" for way, what in named.items()]
    average = (
        f"the average of all 10 ranks in lock-step {statistics.median(times['average']):.1f} s, {loss['average']:.4f}"
    )
    ours = f"{less:.1f} times less: {', '.join(parts)}; {average}"
    return Shown(paper, ours, trains(consistency), of_one(less >= least))


def p8() -> Shown:
    """Compare the seconds in sync, in step."""
    return compared("ssp:0", "plain", "3.8, 4.1, 5.4 times", 3.8, in_sync=True)


def p10() -> Shown:
    """Compare all seconds, in step."""
    return compared("ssp:0", "plain", "2.7, 1.4, 2.2 times", 1.4)


def p11() -> Shown:
    """Compare all seconds, with slack."""
    return compared("ssp:16", "plain", "2.5, 1.3, 3.5 times", 1.3)


def p12() -> Shown:
    """Compare it with slack with servers in step."""
    return compared("ssp:16", "in step", "4.3, 1.7, 3.2 times", 1.7)


PROGRAMS: dict[str, Program] = {"P1": p1, "P6": p6, "P7": p7, "P8": p8, "P10": p10, "P11": p11, "P12": p12}
