"""Arithmetic on samples: one list of values per contender, whose i-th values are from the same turn."""

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
    """A figure with what noise does to it: quartiles over the turns."""

    low: float
    middle: float
    high: float


def ratio(above: Sequence[float], below: Sequence[float]) -> Span:
    """Return above / below, turn by turn: what disturbs both of a turn cancels out."""
    return _span([a / b for a, b in zip(above, below, strict=True)])


def difference(left: Sequence[float], right: Sequence[float]) -> Span:
    """Return left - right, turn by turn."""
    return _span([a - b for a, b in zip(left, right, strict=True)])


def span(values: Sequence[float]) -> Span:
    """Return the quartiles of the values themselves."""
    return _span(list(values))


def apart(above: Span, below: Span) -> Span:
    """Return above / below of values that were not taken in turns: what disturbs one says nothing of the other."""
    return Span(above.low / below.high, above.middle / below.middle, above.high / below.low)


def _span(values: list[float]) -> Span:
    return Span(quantile(values, 0.25), median(values), quantile(values, 0.75))
