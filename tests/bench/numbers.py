"""Arithmetic on samples: one list of values per contender, whose i-th values are from the same start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Summary(NamedTuple):
    """What the table shows of a list."""

    median: float
    least: float
    p90: float


def summary(values: Sequence[float]) -> Summary:
    """Return median, minimum and 90 % quantile."""
    return Summary(median(values), min(values), quantile(values, 0.9))


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which that part of the values lies, between neighbours in proportion."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class Span(NamedTuple):
    """A figure with what noise does to it: between which values its median lies."""

    low: float
    middle: float
    high: float


def ratio(above: Sequence[float], below: Sequence[float]) -> Span:
    """Return above / below, start by start: a disturbance of both in a start cancels out."""
    return span([a / b for a, b in zip(above, below, strict=True)])


def span(values: Sequence[float]) -> Span:
    """Return the median, and the least and the largest that it may well be.

    That is a confidence interval of 90 % by the sign test, which assumes nothing about how values are distributed:
    among n of them, k lie below the median in comb(n, k) of 2^n equally likely cases. Fewer than five values cannot
    be that sure: their span is all of them.
    """
    ordered, rank, below = sorted(values), 0, 1
    while 20 * (below := below + math.comb(len(ordered), rank + 1)) <= 2 ** len(ordered):
        rank += 1
    return Span(ordered[rank], median(ordered), ordered[-1 - rank])


def apart(above: Span, below: Span) -> Span:
    """Return above / below of values that were not taken in turns: a disturbance of one does not reach the other."""
    return Span(above.low / below.high, above.middle / below.middle, above.high / below.low)


def factor(of: float, to: float) -> float:
    """Return how many times one is the other, whichever is larger."""
    return max(of / to, to / of)


def after_last(calls: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the median time from the last arrival at a call to the last leaving; for each rank, begin and end."""
    times = []
    for ranks in zip(*calls, strict=True):
        begins, ends = zip(*ranks, strict=True)
        times.append(max(ends) - max(begins))
    return float(median(times))
