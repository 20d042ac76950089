"""``malt run --summary``: where the time of the ranks went."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from malt._cli.facts import went_on
from malt._cli.wrap import aligned
from malt._ranks.rank import Outcome

COLUMNS = ("rank", "seconds", "compute", "waiting", "scatter", "gather", "collective", "age", "waited for")


def table(
    ranks: Sequence[Outcome], width: int, waited: Mapping[int, Mapping[int, float]], dead: Sequence[Outcome]
) -> list[str]:
    """Return the lines of the table; where they do not fit, without seconds, and with the last column below.

    Compute is what is left of a rank's time: the user's own code. A rank that
    does not use MALT from Python, or was killed, has reported nothing. Age is the largest
    of an update that the rank has folded; in lock-step there is none.
    """
    rows = [(_name(rank), *_row(rank.summary, _unreported(rank, dead), waited.get(rank.number, {}))) for rank in ranks]
    rows.insert(0, COLUMNS)
    if not any(rank.summary and rank.summary["age"] for rank in ranks):
        rows = [(*row[:-2], row[-1]) for row in rows]
    lines = aligned(rows, left={len(rows[0]) - 1})
    return lines if max(map(len, lines)) <= width else list(_narrow(rows, width))


def _name(rank: Outcome) -> str:
    return str(rank.number) if rank.witness is None else f"witness {rank.witness}"


def _unreported(rank: Outcome, dead: Sequence[Outcome]) -> str:
    if rank in dead:
        return "died"
    if rank.late:
        return "too late"
    return "no report" if rank.witness is None else "only votes"


def _narrow(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """Yield the lines of the table for a narrow terminal."""
    for *row, waited in rows:
        cells = (cell.rpartition("(")[2].rstrip(")") for cell in row)
        yield " ".join(cell.rjust(len(name)) for cell, name in zip(cells, rows[0], strict=False)).rstrip()
        if row[0] != COLUMNS[0] and waited:
            yield from textwrap.wrap(f"waited for {waited}", width, initial_indent="     ", subsequent_indent="       ")


def deaths(dead: Sequence[Outcome], ranks: Sequence[Outcome]) -> list[str]:
    """Return the lines about ranks that died: when, from the start of the job, and how much later others went on."""
    noticed = [
        (when + one.later, one.number, [int(dead)])
        for one in ranks
        if one.summary is not None
        for dead, when in one.summary["deaths"].items()
    ]
    rows = [
        (
            _name(one),
            f"{one.lived:.2f}",
            ", ".join(f"rank {who} +{after:.3f}" for who, after in went_on(one, ranks, noticed))
            if one.failed is None
            else "ended the job",
        )
        for one in dead
    ]
    heads = ("rank", "died", "went on")
    width = max(len(row[0]) for row in [heads, *rows])
    return [f"{a.rjust(width)}  {b.rjust(8)}  {c}".rstrip() for a, b, c in [heads, *rows]] if rows else []


def _row(summary: dict[str, Any] | None, without: str, waited: Mapping[int, float]) -> tuple[str, ...]:
    if summary is None:
        return (without, *[""] * (len(COLUMNS) - 2))
    wall, spent = summary["wall"], [summary[kind] for kind in ("wait", "scatter", "fold", "collective")]
    share = [
        f"{seconds:.2f} ({seconds / wall if wall else 0:.0%})" for seconds in [max(0.0, wall - sum(spent)), *spent]
    ]
    longest = sorted((seconds, rank) for rank, seconds in waited.items() if seconds >= 0.005)[::-1][:3]
    late = ", ".join(f"rank {rank} {seconds:.2f}" for seconds, rank in longest)
    return (f"{wall:.2f}", *share, f"{summary['age']:.0f}", late)
