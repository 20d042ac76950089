"""``malt run --summary``: where the time of the ranks went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from malt._rank import Outcome

COLUMNS = ("rank", "seconds", "compute", "waiting", "scatter", "gather", "collective", "waited for")


def table(ranks: Sequence[Outcome]) -> list[str]:
    """Return the lines of the table.

    Compute is what is left of a rank's time: the user's own code. A rank that
    does not use MALT from Python, or was killed, has reported nothing.
    """
    rows = [(str(rank.number), *_row(rank.summary)) for rank in ranks]
    widths = [max(len(row[i]) for row in [COLUMNS, *rows]) for i in range(len(COLUMNS))]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)), row[-1]]).rstrip()
        for row in [COLUMNS, *rows]
    ]


def _row(summary: dict[str, Any] | None) -> tuple[str, ...]:
    try:
        if summary is None:
            return ("no report", *[""] * (len(COLUMNS) - 2))
        wall = float(summary["wall"])
        spent = [float(summary[kind]) for kind in ("wait", "scatter", "fold", "collective")]
        waited = {int(rank): float(seconds) for rank, seconds in summary["waited"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return ("no report", *[""] * (len(COLUMNS) - 2))
    share = [
        f"{seconds:.2f} ({seconds / wall if wall else 0:.0%})" for seconds in [max(0.0, wall - sum(spent)), *spent]
    ]
    longest = sorted((seconds, rank) for rank, seconds in waited.items() if seconds >= 0.005)[::-1][:3]
    return (f"{wall:.2f}", *share, ", ".join(f"rank {rank} {seconds:.2f}" for seconds, rank in longest))
