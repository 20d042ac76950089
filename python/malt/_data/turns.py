"""The items of a rank: their numbers, and every so many of a sequence of items."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Cut: TypeAlias = "slice | np.ndarray[Any, Any]"
"""Which items: every so many of them, or their numbers."""


class Turns(NamedTuple):
    """How items that come in turn are cut: in rounds, of one item for each rank."""

    rank: int
    size: int
    even: str | None

    def count(self, n: int) -> int:
        """Return how many of n items are the rank's."""
        if self.even is None:
            return len(range(self.rank, n, self.size))
        return n // self.size if self.even == "drop" else -(-n // self.size)


def skip(items: Iterable[Any], turns: Turns) -> Iterator[Any]:
    """Go through items in turn, past the items of other ranks."""
    if turns.even is None:
        return itertools.islice(items, turns.rank, None, turns.size)
    return _rounds(iter(items), turns)


def _rounds(items: Iterator[Any], turns: Turns) -> Iterator[Any]:
    """Go through whole rounds; the last one is filled up with the first items, or left out."""
    first: list[Any] = []
    while items_of_round := list(itertools.islice(items, turns.size)):
        first = first or items_of_round
        if len(items_of_round) == turns.size:
            yield items_of_round[turns.rank]
        elif turns.even == "pad":
            yield (items_of_round + first * turns.size)[turns.rank]
