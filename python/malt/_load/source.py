"""What `malt.load` needs of a format."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._parts import Cut

__all__ = ["Source", "in_order", "local_cuts"]


class Source(Protocol):
    """Files of one format, seen as one sequence of rows."""

    def count(self) -> int:
        """Return the number of rows. Collective."""

    def part(self, cut: Cut) -> Any:
        """Return those rows. Collective: what the ranks' parts have in common is agreed on.

        Without a call of `count` before, for slices without a stop only.
        """


def local_cuts(cut: Cut, lengths: list[int]) -> list[tuple[int, Cut]]:
    """Divide a cut of several files into the cuts of each: which, and what of it.

    Of numbers, what `numpy.sort` makes of them is divided; `in_order` puts what has
    been read into the order that was asked for.
    """
    cuts: list[tuple[int, Cut]] = []
    row = 0
    wanted = cut if isinstance(cut, slice) else np.sort(cut)
    for i, n in enumerate(lengths):
        if isinstance(wanted, slice):
            start, stop, step = wanted.indices(sum(lengths))
            begin = start - row if start >= row else -(row - start) % step
            local: Cut = slice(begin, max(begin, min(n, stop - row)), step)
            empty = range(n)[local] == range(0)
        else:
            low, high = np.searchsorted(wanted, (row, row + n))
            local, empty = wanted[low:high] - row, bool(low == high)
        if not empty:
            cuts.append((i, local))
        row += n
    return cuts


def in_order(cut: Cut) -> np.ndarray[Any, Any] | None:
    """Return which of the sorted rows comes where; None if they are in order already."""
    if isinstance(cut, slice):
        return None
    places: np.ndarray[Any, Any] = np.argsort(np.argsort(cut))
    return places
