"""Parameter servers that send through trees, on a network that ``malt sim`` makes: P6."""

from __future__ import annotations

from .job import job
from .shown import Program, Shown
from .sparse import median, ratio


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


PROGRAMS: dict[str, Program] = {"P6": p6}
