"""``malt run --summary``: where the time of the ranks went."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from malt._cli.facts import SOONER
from malt._cli.wrap import aligned
from malt._ranks.rank import Outcome, successors

COLUMNS = ("rank", "seconds", "compute", "waiting", "scatter", "gather", "collective", "waited for")


def table(ranks: Sequence[Outcome], width: int, waited: Mapping[int, Mapping[int, float]]) -> list[str]:
    """Return the lines of the table; where they do not fit, without seconds, and with the last column below.

    Compute is what is left of a rank's time: the user's own code. A rank that
    does not use MALT from Python, or was killed, has reported nothing.
    """
    rows = [(_name(rank), *_row(rank.summary, _unreported(rank), waited.get(rank.number, {}))) for rank in ranks]
    lines = aligned([COLUMNS, *rows], left={len(COLUMNS) - 1})
    return lines if max(map(len, lines)) <= width else list(_narrow(rows, width))


def _name(rank: Outcome) -> str:
    return str(rank.number) if rank.witness is None else f"witness {rank.witness}"


def _unreported(rank: Outcome) -> str:
    if rank.died is not None:
        return "died"
    return "no report" if rank.witness is None else "only votes"


def _narrow(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """Yield the lines of the table for a narrow terminal."""
    for *row, waited in [COLUMNS, *rows]:
        cells = (cell.rpartition("(")[2].rstrip(")") for cell in row)
        yield " ".join(cell.rjust(len(name)) for cell, name in zip(cells, COLUMNS, strict=False)).rstrip()
        if row[0] != COLUMNS[0] and waited:
            yield from textwrap.wrap(f"waited for {waited}", width, initial_indent="     ", subsequent_indent="       ")


def deaths(ranks: Sequence[Outcome]) -> list[str]:
    """Return the lines about ranks that died: when, from the start of the job, and how much later others went on."""
    died = [(rank.died, rank) for rank in ranks if rank.died is not None]
    rows = []
    for at, rank in sorted(died, key=lambda entry: entry[0]):
        since = at - SOONER if rank.start else -math.inf  # before is when an earlier process of the rank died
        others = [
            f"rank {other.number} +{max(0.0, when - at):.3f}"
            for other in ranks
            for when in _noticed(other, rank)
            if when >= since
        ]
        if any(other.died is not None for other in successors(rank, ranks)):
            others = []  # what a rank tells is when it noticed the last one
        rows.append((_name(rank), f"{rank.lived:.2f}", ", ".join(others)))
    heads = ("rank", "died", "went on")
    width = max(len(row[0]) for row in [heads, *rows])
    return [f"{a.rjust(width)}  {b.rjust(8)}  {c}".rstrip() for a, b, c in [heads, *rows]] if rows else []


def _noticed(other: Outcome, rank: Outcome) -> Iterator[float]:
    """Yield when a rank noticed the death of another, if it did, by our clock."""
    if other.summary is not None and str(rank.number) in other.summary["deaths"]:
        yield other.summary["deaths"][str(rank.number)] + other.later


def _row(summary: dict[str, Any] | None, without: str, waited: Mapping[int, float]) -> tuple[str, ...]:
    if summary is None:
        return (without, *[""] * (len(COLUMNS) - 2))
    wall, spent = summary["wall"], [summary[kind] for kind in ("wait", "scatter", "fold", "collective")]
    share = [
        f"{seconds:.2f} ({seconds / wall if wall else 0:.0%})" for seconds in [max(0.0, wall - sum(spent)), *spent]
    ]
    longest = sorted((seconds, rank) for rank, seconds in waited.items() if seconds >= 0.005)[::-1][:3]
    return (f"{wall:.2f}", *share, ", ".join(f"rank {rank} {seconds:.2f}" for seconds, rank in longest))
