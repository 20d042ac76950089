"""What is measured, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

KB, MB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Target:
    """What a row has to reach; None is no demand."""

    peer: float | None = None
    """At least so many times as fast as the best peer."""
    limit: float | None = None
    """At most so many times the limit, or the row's baseline."""
    most: float | None = None
    """At most so much, in the row's unit."""
    over: float | None = None
    """At most so much more than the baseline, in the row's unit."""
    after: tuple[str, float, str] | None = None
    """At most so many times what the row of that key takes; how to call it."""


FRAME, PAYLOAD = 1514, 1448
"""Bytes of an Ethernet frame, and how many of them TCP carries for who uses it."""


@dataclass(frozen=True)
class Link:
    """The cables over which the ranks are joined, where they are on different hosts."""

    rate: float | None = None
    """Bits per second, of whole Ethernet frames; None is no limit."""
    delay: float = 0.0
    """Seconds from one host to another."""


@dataclass(frozen=True)
class Row:
    """One line of the table: an operation, its size, and how many ranks do it."""

    title: str
    op: str
    ranks: int
    size: int
    target: Target = Target()
    options: dict[str, Any] = field(default_factory=dict)
    baseline: str = "limit"
    """What stands beside it: ``limit``, a known value (see `known`), or another operation of MALT's."""
    base_options: dict[str, Any] = field(default_factory=dict)
    unit: str = "s"
    """Of the values: ``s``, ``s/B`` or ``B``."""
    once: bool = False
    """A round is one call, since the call is a measurement of its own."""
    link: Link = Link()

    @property
    def key(self) -> str:
        """Its name in the JSON, and for `Target.after`."""
        link = {"rate": self.link.rate, "delay": self.link.delay}
        options = {**self.options, **{name: f"{value:g}" for name, value in link.items() if value}}
        more = "".join(f" {name}={value}" for name, value in sorted(options.items()))
        return f"{self.op}{more} n={self.ranks} {self.size}B"

    @property
    def known(self) -> float | None:
        """The baseline that need not be measured: ``size``, its bytes; ``link``, the time that the rate permits."""
        if self.baseline == "link" and self.link.rate:
            return self.size * FRAME / PAYLOAD * 8 / self.link.rate
        return float(self.size) if self.baseline == "size" else None


def rows(cores: int) -> list[Row]:
    """Return all rows for a machine with so many cores."""
    return [
        *averages(cores),
        *cached(cores),
        *readers(cores),
        *skew(cores),
        *scatters(),
        *gathers(),
        *small(cores),
        *sparse(),
        *memory(cores),
        *many(cores),
        Row("copy, every core", "copy", cores, 64 * MB),
        Row("read, every core", "read", cores, 64 * MB),
    ]


def averages(cores: int) -> list[Row]:
    """Averages of arrays that each rank has just written, as in training; with one rank per core, or more."""
    targets = {
        KB: Target(peer=1, most={2: 1.2e-6, 4: 3e-6}.get(cores)),
        16 * KB: Target(peer=1),
        64 * KB: Target(peer=4),
        MB: Target(peer=5, limit=1.3),
        4 * MB: Target(),
        16 * MB: Target(peer=2, limit=1.3),
        64 * MB: Target(peer=2, limit=1.3),
    }
    made = [Row("write + average", "write-sync", cores, size, target) for size, target in targets.items()]
    if cores > 2:
        made.append(Row("write + average", "write-sync", 2, KB, Target(peer=1, most=1.2e-6)))
    alone = Row("", "write-sync", cores, MB).key
    twice = Target(peer=4, after=(alone, 3, "one rank per core"))
    made.append(Row("write + average, 2 ranks per core", "write-sync", 2 * cores, MB, twice))
    many = [Row("write + average, many ranks", "write-sync", n, MB, Target(limit=1.5)) for n in (16, 32)]
    return made + [row for row in many if row.ranks not in (cores, 2 * cores)]


def cached(cores: int) -> list[Row]:
    """Averages of arrays that nobody writes, as benchmarks of collective calls have them.

    A rank's part of all arrays is in the caches of its core from the second call on: nothing is asked of these rows.
    """
    shapes = [(cores, size) for size in (KB, 64 * KB, MB, 4 * MB, 16 * MB, 64 * MB)] + [(2 * cores, MB)]
    return [Row(f"average ({op})", op, ranks, size) for op in ("sync", "allreduce") for ranks, size in shapes]


def readers(cores: int) -> list[Row]:
    """Syncs that wait for nobody, or for who is far behind: each rank writes its array, sends it, and folds."""
    return [
        Row(
            f"write + sync, {graph}, {consistency}",
            "write-graph",
            cores,
            size,
            Target(limit=1.3) if size == MB else Target(),
            {"graph": graph, "consistency": consistency},
        )
        for graph in ("all", "halton")
        for consistency in ("ssp:3", "async")
        for size in (64 * KB, MB, 16 * MB)
    ]


def skew(cores: int) -> list[Row]:
    """Averages to which the last rank comes late: the time from then on, until the last rank leaves."""
    first = _late(cores, 0, Target())
    asked = {500: Target(after=(first.key, 3, "that at 0 us"))}
    return [first] + [_late(cores, us, asked.get(us, Target())) for us in (50, 500, 3000)]


def _late(cores: int, us: int, target: Target) -> Row:
    return Row(f"average, last rank {us} us late", "skew", max(2, cores), KB, target, {"late": us / 1e6})


def sizes(cores: int) -> list[Row]:
    """Averages of 4 B to 256 MB, for a table such as those of nccl-tests and the Intel MPI Benchmarks."""
    return [Row("write + average", "write-sync", cores, 4**power) for power in range(1, 15)]


def scatters() -> list[Row]:
    """Scatters to 1 to 15 neighbours."""
    return [
        Row(
            f"async scatter to {k}",
            "scatter",
            k + 1,
            size,
            Target(peer=k / 1.3, limit=1.15) if (k, size) == (3, MB) else Target(),
        )
        for k in (1, 3, 7, 15)
        for size in (MB, 16 * MB, 64 * MB)
    ]


def gathers() -> list[Row]:
    """Folds of k updates."""
    own = [
        Row(
            f"fold in Python, k = {k}",
            "gather-own-fold",
            k + 1,
            64 * KB,
            baseline="numpy-fold",
        )
        for k in (1, 3)
    ]
    return [
        Row(
            f"gather (mean), k = {k}",
            "gather",
            k + 1,
            size,
            Target(limit=1.25) if (k, size) == (3, 64 * KB) else Target(),
        )
        for k in (1, 3, 7)
        for size in (64 * KB, MB, 16 * MB, 64 * MB)
    ] + own


def small(cores: int) -> list[Row]:
    """What moves next to nothing. A wait looks for less than 1 ms, then sleeps, and looks up 20 times a second."""
    return [
        Row("gather, nothing new", "gather-idle", 2, 4 * KB, Target(most=1e-6)),
        Row("sync(every=k), not due", "sync-idle", 2, 4 * KB, Target(most=0.3e-6)),
        Row("put -> seen", "put-seen", 2, 64, Target(peer=1, most=1.2e-6)),
        Row("put -> seen, gather(wait=1)", "put-awaited", 2, 64),
    ] + [
        Row("cpu time of 1 s wait, peer stopped", "stopped", n, 4 * KB, target, once=True)
        for n, target in ((2, Target()), (max(4, 2 * cores), Target(most=5e-3)))
    ]


def sparse() -> list[Row]:
    """Sparse against dense, seconds per byte sent: half of dense's bandwidth is twice its time."""
    return [
        Row(
            f"sparse scatter + gather, {density:.1%}",
            "sparse",
            2,
            40_000_000,
            Target(limit=2) if density == 0.1 else Target(),
            {"density": density},
            "sparse",
            {"density": 1.0},
            "s/B",
            once=True,
        )
        for density in (0.001, 0.01, 0.1, 0.25, 0.5)
    ]


def memory(cores: int) -> list[Row]:
    """What the ranks hold for a vector: 3 slots and the array itself for halton."""
    forms = (("all", "bsp"), ("halton", "async"))
    return [
        Row(
            f"memory per rank, {graph}/{consistency}",
            "memory",
            cores,
            16 * MB,
            Target(),
            {"graph": graph, "consistency": consistency},
            "size",
            {},
            "B",
            once=True,
        )
        for graph, consistency in forms
    ]


def many(cores: int) -> list[Row]:
    """One rank per core, and more ranks than cores, on every graph."""
    graphs = ("all", "ring", "chord", "halton", "halton-paper", "random:3", "hypercube", "star", "one-peer")
    return [
        Row(f"sync, {graph}", "sync-graph", n, MB, options={"graph": graph})
        for graph in graphs
        for n in (cores, 16, 32)
    ]


def tiny(of: list[Row], cores: int) -> list[Row]:
    """One small row of each operation, for a run that only shows that all of it works."""
    seen: dict[tuple[str, str], Row] = {}
    for row in of:
        if row.ranks <= max(2, cores):
            size = min(row.size, MB if row.op == "memory" else 16 * KB)
            target = replace(row.target, after=None)
            seen.setdefault((row.op, row.unit), replace(row, ranks=2, size=size, target=target))
    return list(seen.values())
