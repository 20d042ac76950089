"""Sparse allreduce beside the dense average and allgather, on a network that ``malt sim`` makes: A1, A2, A12."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from .job import job
from .shown import Program, Shown

HOSTS = 8
RATE = "1Gbit"

Times = dict[str, list[float]]


def median(times: list[float]) -> str:
    """Return the median in milliseconds, with the quartiles."""
    low, middle, high = (1e3 * q for q in statistics.quantiles(times, n=4))
    return f"{middle:.0f} ms ({low:.0f} to {high:.0f})"


def ratio(times: Times, slow: str, quick: str) -> float:
    """Return how many times longer one takes than the other, by their medians."""
    return statistics.median(times[slow]) / statistics.median(times[quick])


def a1() -> Shown:
    """Time sums of density .03."""
    found = job(HOSTS, "ranks.py", "sums", rate=RATE, turns=11)
    times, sent = found["times"], found["bytes"]
    more = {name: ratio(times, name, "rows") for name in ("sync", "allreduce", "allgather")}
    ours = (
        f"rows {median(times['rows'])}; v.sync() of the whole {median(times['sync'])}, {more['sync']:.1f} times; "
        f"v.allreduce() {more['allreduce']:.1f} times; allgather of ids and values {median(times['allgather'])}, "
        f"{more['allgather']:.1f} times. Bytes: {sent[1] / sent[0]:.1f} and {sent[2] / sent[0]:.1f} times fewer"
    )
    how = f"net: {HOSTS} hosts at {RATE}, 1 M float32 of density .03, medians of 11 (quartiles)"
    holds = max(more.values()) >= 5
    return Shown("against systems that are not here", ours, how, "in part" if holds else "does not hold")


def a2() -> Shown:
    """Time PageRank."""
    found = job(HOSTS, "ranks.py", "pages", rate=RATE, turns=5)
    times = found["times"]
    less = {name: ratio(times, name, "rows") for name in ("sync", "allreduce")}
    sent = found["bytes"]
    ours = (
        f"communication {median(times['rows'])} for 10 iterations; v.sync() of whole arrays {median(times['sync'])}, "
        f"{less['sync']:.1f} times, by v.allreduce() {less['allreduce']:.1f} times; "
        f"{sent[1] / sent[0]:.1f} times fewer bytes, since each of {HOSTS} ranks needs {found['needs']:.0%} of the "
        f"pages; scores differ from one process by {found['apart']:.0e} of the largest"
    )
    how = f"net: {data()}, {HOSTS} hosts at {RATE}, medians of 5 (quartiles)"
    holds = found["apart"] < 1e-6 and min(less.values()) >= 3
    return Shown("6 s and 23 s on 64 nodes", ours, how, "holds" if holds else "in part")


def a12() -> Shown:
    """Find the share of communication."""
    shares = []
    for hosts in (2, 4, 8):
        times = job(hosts, "ranks.py", "pages", rate=RATE, turns=5)["times"]
        shares.append(f"{statistics.median(times['rows']) / statistics.median(times['all']):.0%} of {hosts}")
    how = f"net: {data()}, PageRank at {RATE}, with the making of the vectors; all hosts share this machine's cores"
    return Shown("up to 80 % of 64", ", ".join(shares), how, "in part")


def data() -> str:
    """Say what is ranked."""
    there = (Path(os.environ.get("MALT_DATA", ".")) / "cnr-2000").exists()
    return "cnr-2000" if there else "2,000 pages that are made up"


PROGRAMS: dict[str, Program] = {"A1": a1, "A2": a2, "A12": a12}
