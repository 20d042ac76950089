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
    after: tuple[str, float] | None = None
    """At most so many times what the row of that key takes."""


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
    """Averages over ranks, with one rank per core, then two; and of arrays that each rank has just written.

    The others leave the arrays alone, as benchmarks of collective calls do. A rank's part of them is in the caches of
    its core from then on.
    """
    targets = {
        KB: Target(peer=1, most={2: 1.5e-6, 4: 4e-6}.get(cores)),
        64 * KB: Target(peer=4),
        MB: Target(peer=5, limit=1.3),
        4 * MB: Target(peer=5, limit=1.3),
        16 * MB: Target(peer=2, limit=1.3),
        64 * MB: Target(peer=2, limit=1.3),
    }
    made = []
    for op in ("sync", "allreduce"):
        made += [Row(f"average ({op})", op, cores, size, target) for size, target in targets.items()]
        if cores > 2:
            made.append(Row(f"average ({op})", op, 2, KB, Target(peer=1, most=1.5e-6)))
        alone = Row("", op, cores, MB).key
        made.append(Row(f"average ({op}), 2 ranks per core", op, 2 * cores, MB, Target(peer=4, after=(alone, 3))))
    return made + [Row("write + average (sync)", "write-sync", cores, size) for size in (64 * KB, MB, 16 * MB)]


def scatters() -> list[Row]:
    """Scatters to 1 to 15 neighbours."""
    return [
        Row(f"async scatter to {k}", "scatter", k + 1, size, Target(peer=k / 1.3, limit=1.15))
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
            Target(over=5e-6),
            baseline="numpy-fold",
        )
        for k in (1, 3)
    ]
    return [
        Row(f"gather (mean), k = {k}", "gather", k + 1, size, Target(limit=1.25))
        for k in (1, 3, 7)
        for size in (64 * KB, MB, 16 * MB, 64 * MB)
    ] + own


def small(cores: int) -> list[Row]:
    """What moves next to nothing. A wait looks for less than 1 ms, then sleeps, and looks up 20 times a second."""
    return [
        Row("gather, nothing new", "gather-idle", 2, 4 * KB, Target(most=1e-6)),
        Row("sync(every=k), not due", "sync-idle", 2, 4 * KB, Target(most=0.3e-6)),
        Row("put -> seen", "put-seen", 2, 64, Target(peer=1, most=1.2e-6)),
    ] + [
        Row("cpu time of 1 s wait, peer stopped", "stopped", n, 4 * KB, Target(most=5e-3), once=True)
        for n in (2, 2 * cores)
    ]


def sparse() -> list[Row]:
    """Sparse against dense, seconds per byte sent: half of dense's bandwidth is twice its time."""
    return [
        Row(
            f"sparse scatter + gather, {density:.1%}",
            "sparse",
            2,
            40_000_000,
            Target(limit=2),
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
    forms = (("all", "bsp", 1.1), ("halton", "async", 4.0))
    return [
        Row(
            f"memory per rank, {graph}/{consistency}",
            "memory",
            cores,
            16 * MB,
            Target(limit=limit),
            {"graph": graph, "consistency": consistency},
            "size",
            {},
            "B",
            once=True,
        )
        for graph, consistency, limit in forms
    ]


def many(cores: int) -> list[Row]:
    """More ranks than cores, on every graph: a sync takes no more than its share of the cores."""
    graphs = ("all", "ring", "chord", "halton", "halton-paper", "random:3", "hypercube", "star", "one-peer")
    made = []
    for graph in graphs:
        options = {"graph": graph}
        alone = Row(f"sync, {graph}", "sync-graph", cores, MB, Target(), options)
        made.append(alone)
        made += [
            Row(f"sync, {graph}", "sync-graph", n, MB, Target(after=(alone.key, n / cores)), options) for n in (16, 32)
        ]
    return made


def tiny(cores: int) -> list[Row]:
    """One small row of each operation, for a run that only shows that all of it works."""
    seen: dict[tuple[str, str], Row] = {}
    for row in rows(cores):
        if row.ranks <= max(2, cores):
            size = min(row.size, MB if row.op == "memory" else 16 * KB)
            target = replace(row.target, after=None)
            seen.setdefault((row.op, row.unit), replace(row, ranks=2, size=size, target=target))
    return list(seen.values())
