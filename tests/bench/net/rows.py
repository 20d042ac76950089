"""What is measured over a network, and what is asked of it."""

from __future__ import annotations

from ..rows import KB, MB, Link, Row, Target

GBIT, DELAY = 1e9, 5e-3

RATE = 0.95
"""The part of a cable's rate that a scatter has to use."""

WITHIN = 1e-3
"""Seconds, besides the delay, in which an update has to land."""


def rows() -> list[Row]:
    """Return all rows."""
    return [*streams(), *latencies(), *costs(), *averages(), *hidden()]


def streams() -> list[Row]:
    """Scatters one after the other, each of which arrives: seconds of one. The last two are beside iperf3."""
    shaped = [
        Row(
            f"scatter, {number} Gbit/s",
            "stream",
            2,
            16 * MB,
            Target(limit=1 / RATE),
            baseline="link",
            once=True,
            link=Link(number * GBIT),
        )
        for number in (1, 10)
    ]
    return shaped + [
        Row("scatter, no limit", "stream", 2, size, Target(peer=0.8), once=True) for size in (8 * MB, 64 * MB)
    ]


def latencies() -> list[Row]:
    """How long a small update takes; beside half of there and back in Go, or alone."""
    landing = [
        Row(
            f"put -> lands, receiver {does}{', 5 ms' if delay else ''}",
            "lands",
            2,
            64,
            Target(most=WITHIN + delay),
            {"does": does},
            once=True,
            link=Link(delay=delay),
        )
        for does in ("sleeps", "computes")
        for delay in (0.0, DELAY)
    ]
    return [Row("put -> seen", "put-seen", 2, 64, Target(limit=1.3)), *landing]


def costs() -> list[Row]:
    """What sending costs the processor, and the sender's own step."""
    stopped = Row(
        "step, receiver stopped",
        "step",
        2,
        MB,
        Target(limit=1.05),
        {"stopped": True},
        "step",
        {"stopped": False},
    )
    return [
        Row("cpu time of both, per byte sent", "cpu", 2, 16 * MB, Target(peer=1 / 1.5), unit="s/B", once=True),
        stopped,
    ]


def averages() -> list[Row]:
    """Averages of 4 hosts, beside gloo."""
    targets = {KB: 2.0, 64 * KB: 2.0, MB: None, 16 * MB: 1.2, 64 * MB: 1.2}
    made = [Row("average of 4 hosts", "sync", 4, size, Target(peer=peer)) for size, peer in targets.items()]
    return made + [
        Row("average of 4 hosts, 1 Gbit/s", "sync", 4, size, Target(peer=1), link=Link(GBIT))
        for size in (64 * KB, MB, 16 * MB)
    ]


def hidden() -> list[Row]:
    """A step of 50 ms with an average that takes 42, which goes on beside it; the same one after the other."""
    return [
        Row(
            "step of 50 ms, average beside it, 1 Gbit/s",
            "busy",
            2,
            5_000_000,
            Target(limit=0.65),
            {"begun": True},
            "busy",
            {"begun": False},
            once=True,
            link=Link(GBIT),
        )
    ]


def tiny() -> list[Row]:
    """One small row of each operation, for a run that only shows that all of it works."""
    seen: dict[str, Row] = {}
    for row in rows():
        size = min(row.size, 64 * KB)
        seen.setdefault(
            row.op,
            Row(
                row.title,
                row.op,
                2,
                size,
                row.target,
                row.options,
                row.baseline,
                row.base_options,
                row.unit,
                row.once,
                row.link,
            ),
        )
    return list(seen.values())
