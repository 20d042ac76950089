"""Cutting what lies in several pieces one after the other: files, segments, row groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..turns import Cut


def within(wanted: Cut, row: int, number: int) -> range | np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return which of ``number`` rows from ``row`` on are wanted, counted from 0."""
    if isinstance(wanted, slice):
        step = wanted.step or 1
        start = wanted.start or 0
        begin = start - row if row <= start else -(row - start) % step
        end = number if wanted.stop is None else min(number, wanted.stop - row)
        return range(begin, max(begin, end), step)
    low, high = np.searchsorted(wanted, (row, row + number))
    return wanted[low:high] - row


def local_cuts(cut: Cut, lengths: list[int]) -> list[tuple[int, Cut]]:
    """Divide a cut of several pieces into the cuts of each: which piece, and what of it.

    Of numbers, what `numpy.sort` makes of them is divided; `in_order` puts what has
    been read into the order that was asked for.
    """
    cuts: list[tuple[int, Cut]] = []
    row = 0
    wanted = cut if isinstance(cut, slice) else np.sort(cut)
    for i, n in enumerate(lengths):
        local = within(wanted, row, n)
        if len(local):
            cuts.append((i, slice(local.start, local.stop, local.step) if isinstance(local, range) else local))
        row += n
    return cuts


def in_order(cut: Cut) -> np.ndarray[Any, Any] | None:
    """Return which of the sorted rows comes where; None if they are in order already."""
    if isinstance(cut, slice):
        return None
    places: np.ndarray[Any, Any] = np.argsort(np.argsort(cut))
    return places
