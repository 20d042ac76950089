"""The model of ``malt plan``: what a step will take, send and hold, from the figures of ``malt bench``.

All ranks are equally fast, and have a core each. A host has one cable, whose two
directions work at once. A step computes, then syncs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import malt

FRAME = (1514 + 33) / 1448
"""Bytes on a cable for each byte of an update: whole Ethernet frames, and half an acknowledgement for each."""

STEPS = 96
"""Steps after which what a step takes is steady."""

SLACK = {"bsp": 0.0, "notify-ack": 0.0, "ssp:2": 2.0, "async": math.inf}
"""By how many clocks an update may be older than the gather that folds it, the strictest first."""

WAYS = (
    ("all", "bsp"),
    ("all", "notify-ack"),
    ("all", "ssp:2"),
    ("all", "async"),
    ("halton", "bsp"),
    ("halton", "ssp:2"),
    ("halton", "async"),
    ("one-peer", "ssp:2"),
    ("ring", "ssp:2"),
)
"""Graphs and consistencies that are compared: those of "Which graph and consistency"."""

UNSENT = 256 << 10
"""Bytes that the kernel takes of a connection before it has sent them (rdma/tcp)."""

WORTH = 1.05
"""A way that is faster by less is not worth a looser one."""

OLD = 10.0
"""Steps: a way whose updates are older when they are folded is not recommended."""


class Job(NamedTuple):
    """What is planned."""

    bytes: int
    step: float
    """Seconds that a rank computes before each sync."""
    hosts: Sequence[int]
    """The ranks of each."""
    rate: float = math.inf
    """Bits per second of a host's cable, in each direction."""
    delay: float = 0.0
    """Seconds from a host to another."""
    cores: float | None = None
    """Of a host; None: one for each of its ranks."""


class Forecast(NamedTuple):
    """What one way will cost."""

    graph: str
    consistency: str
    seconds: float
    """Of a step with its sync."""
    speedup: float
    """Steps of all ranks in the time of a step without a sync."""
    links: Mapping[tuple[int, int], float]
    """Bytes of updates in a step from one host to another."""
    sent: float
    """Bytes of updates in a step that leave, or reach, the busiest host."""
    memory: int
    """Bytes that a rank holds at most, with its array."""
    age: float
    """Steps that another rank makes until its update is replaced by the next that arrives."""


class Figures:
    """What ``malt bench`` has measured, in seconds.

    Parameters
    ----------
    results : list of dict
        The records that ``malt bench --json`` writes.
    """

    def __init__(self, results: Sequence[Mapping[str, Any]]) -> None:
        sizes = (r for r in results if r["kind"] == "size" and int(r["bytes"]) > 0)
        self._sizes = sorted(sizes, key=lambda r: int(r["bytes"]))
        (network,) = (r for r in results if r["kind"] == "network")
        self.seen, self.update, self.byte = (float(network[name]) for name in ("seen", "update", "byte"))
        self.copy, self.sync, self.copied = (self._timed(name) for name in ("copy", "sync", "copied"))

    def _timed(self, name: str) -> Callable[[int], float]:
        """Return the time by size: on the line between two that were measured; beyond the largest by its bytes."""
        import numpy as np  # here: the help does without

        sizes, times = zip(*((int(r["bytes"]), float(r[name])) for r in self._sizes), strict=True)
        return lambda size: float(np.interp(size, sizes, times)) * max(1.0, size / sizes[-1])


class Traffic(NamedTuple):
    """Which updates a graph sends in a step."""

    links: Any
    """From one host to another, on average over the turns of the graph: a matrix."""
    near: float
    """To a rank from others of its host, on average over the turns, where that is most."""
    readers: int
    """Receivers of a rank, over all turns, where these are most."""
    far: int
    """Senders to a rank on other hosts, over all turns, where these are most."""


def traffic(graph: str, hosts: Sequence[int]) -> Traffic:
    """Return what a graph sends between hosts of so many ranks."""
    import numpy as np  # here: the help does without

    host = np.repeat(np.arange(len(hosts)), hosts)
    made = malt.Graph(graph, len(host))
    turns = max(1, len(host) - 1) if graph == "one-peer" else 1
    edges = Counter((rank, to) for turn in range(turns) for rank, out in enumerate(made.lists(turn + 1)) for to in out)
    sends = np.zeros((len(host), len(host)))
    sends[tuple(np.transpose([*edges]))] = [*edges.values()]
    far, of = host[:, None] != host, np.eye(len(hosts))[host]
    return Traffic(
        of.T @ (sends * far) @ of / turns,
        (sends * ~far).sum(axis=0).max() / turns,
        int((sends > 0).sum(axis=1).max()),
        int((sends * far > 0).sum(axis=0).max()),
    )


def busiest(links: Any) -> float:
    """Return the most that leaves, or reaches, one host."""
    return float(max(*links.sum(axis=0), *links.sum(axis=1)))


def forecasts(job: Job, figures: Figures) -> list[Forecast]:
    """Return what each way will cost, the one to take first.

    It is the strictest of the ways within 5 % of the fastest, and of several the one
    on which the models come together soonest. A way that mostly leaves out what
    the cables cannot carry does not count.
    """
    size = sum(job.hosts)
    found = sorted(
        (forecast(*way, job, figures) for way in WAYS if size > 2 or way[0] == "all"), key=lambda f: f.seconds
    )
    fresh = [f for f in found if f.age <= OLD]
    good = [f for f in fresh if f.seconds <= WORTH * fresh[0].seconds]
    kinds = list(SLACK)
    best = min(good, key=lambda f: (kinds.index(f.consistency), malt.Graph(f.graph, size).second_eigenvalue))
    return [best, *(f for f in found if f is not best)]


def forecast(graph: str, consistency: str, job: Job, figures: Figures) -> Forecast:
    """Return what a way will cost."""
    from malt import _lib

    count, ranks, size = len(job.hosts), max(job.hosts), job.bytes
    sends = traffic(graph, job.hosts)
    updates = busiest(sends.links)
    in_step = (graph, consistency) == ("all", "bsp")
    if in_step and count == 1:  # in memory that all map
        links, hops, held = sends.links, 0, 1.0
        local = figures.sync(size)
    elif in_step and _lib.inspect(" ".join(map(str, ("shares", size, *job.hosts)))) == "true":
        links, hops, held = (sends.links > 0) * 2 * size / count, 2 + (ranks > 1), 3.5
        local = figures.sync(size) if ranks > 1 else 0.0
        updates = 2.0 * (count - 1) * ranks
    else:
        links, hops = size * sends.links, int(count > 1)
        held = 1 + _slots(graph, consistency, sends.readers) + (1 if consistency == "notify-ack" else 3) * sends.far
        # Each sender beyond the first is one array more to read: half a copy.
        local = figures.copied(size) + (sends.near - 1) * figures.copy(size) / 2 if sends.near else 0.0
    cores, sent = job.cores or ranks, busiest(links)
    moving = sent * figures.byte / cores
    carry = max(8 * sent * FRAME / job.rate, moving)
    latency = hops * (job.delay + figures.seen) + updates * figures.update / cores
    early = 8 * updates * UNSENT * FRAME / job.rate
    seconds = paced(job.step, local, carry, early, moving, latency, SLACK[consistency])
    part = min(1.0, seconds / carry) if carry else 1.0
    return Forecast(
        graph,
        consistency,
        seconds,
        speedup=sum(job.hosts) * job.step / seconds,
        links={(a, b): part * amount for a, row in enumerate(links.tolist()) for b, amount in enumerate(row) if amount},
        sent=part * sent,
        memory=math.ceil(held * size),
        age=1 / part,
    )


def _slots(graph: str, consistency: str, readers: int) -> int:
    """Return how many updates of its own a rank keeps at most."""
    if consistency == "notify-ack":
        return 1
    return (2 * readers + 1 if graph == "one-peer" else readers + 2) + (consistency == "bsp")


def paced(step: float, local: float, carry: float, early: float, moving: float, latency: float, slack: float) -> float:
    """Return the seconds of a step with its sync, among ranks that all do the same.

    Parameters
    ----------
    step, local : float
        Seconds that a rank computes, and copies and folds.
    carry : float
        Seconds for which the updates of one sync keep the cable busy. One that is replaced
        before its turn is never sent.
    early : float
        Seconds by which its turn comes before the cable is free.
    moving : float
        Seconds of it in which they keep the cores busy, that ranks could compute on.
    latency : float
        Seconds until an update that has been sent is folded.
    slack : float
        By how many clocks an update may be older than the gather that folds it.
    """
    if slack == 0:
        return step + local + carry + latency
    work = step + local
    work += moving * min(1.0, work / carry) if carry else 0.0
    flights = [(0.0, 0)]  # when the update of which clock has come
    now = free = half = 0.0
    waiting = 0  # the clock of the update whose turn is next

    def send(clock: int, at: float) -> float:
        flights.append((at + carry + latency, clock))
        return at + carry

    for clock in range(1, STEPS + 1):
        now += work
        if waiting and free - early <= now:
            free = send(waiting, free)
        waiting = clock
        if free - early <= now or flights[-1][1] + slack < clock:
            free = send(clock, max(free, now))
            waiting = 0
        now = max(now, min(at for at, of in flights if of + slack >= clock))
        half = half or now * (clock >= STEPS // 2)
    return (now - half) / (STEPS - STEPS // 2)
