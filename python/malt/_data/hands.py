"""What a deal has handed out, as far as it may have to be handed out again.

A hand is what all ranks get at once: the items of a pass, or the rest of one after deaths.
All of this is a function of facts that the ranks have agreed on, so it is the same on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .shard import cut
from .turns import Cut

Mark: TypeAlias = tuple[int, int]
"""How far a rank is: the number of a hand, and how many of its items of that hand it has got."""


class Hand(NamedTuple):
    """What is dealt at once, and among whom."""

    number: int
    ranks: Sequence[int]
    n: int
    items: np.ndarray[Any, Any] | None  # their numbers; None: all
    order: str
    seed: int | None
    even: str | None

    def of(self, rank: int) -> Cut:
        """Return which items are that rank's, as `malt.shard` would cut them among the ranks of this hand."""
        own = cut(self.order, self.seed, self.n, self.ranks.index(rank), len(self.ranks), self.even)
        return own if self.items is None else self.items[own]

    def count(self, rank: int) -> int:
        """Return how many those are."""
        order = "stride" if self.order == "shuffle" else self.order  # as many, without a permutation
        own = cut(order, None, self.n, self.ranks.index(rank), len(self.ranks), self.even)
        return len(range(self.n)[own]) if isinstance(own, slice) else len(own)

    def numbers(self, rank: int) -> np.ndarray[Any, Any]:
        own = self.of(rank)
        return np.arange(self.n)[own] if isinstance(own, slice) else own


class Hands:
    """The hands of one deal, from the oldest that a rank may not have synced.

    ``ranks`` are those among whom the next one is dealt.
    """

    def __init__(self, n: int, order: str, seed: int | None, even: str | None, ranks: Sequence[int]) -> None:
        self.n, self.order, self.seed, self.even = n, order, seed, even
        self.ranks = ranks
        self._next = 0
        self._kept: list[Hand] = []
        self._since: dict[int, Mark] = {}  # by rank: what it got before that is not dealt again

    def everything(self, epoch: int) -> Hand:
        """Deal all items, for the pass of that number: each has its own seed."""
        seed = None if self.seed is None else (self.seed + epoch) % 2**32
        return self._deal(self.n, None, self.order, seed, self.even)

    def rest(self, items: np.ndarray[Any, Any]) -> Hand:
        """Deal these in turn. Where parts have to be equally long none is dropped for it."""
        return self._deal(len(items), items, "stride", None, self.even and "pad")

    def _deal(self, n: int, items: np.ndarray[Any, Any] | None, order: str, seed: int | None, even: str | None) -> Hand:
        hand = Hand(self._next, self.ranks, n, items, order, seed, even)
        self._next += 1
        self._kept.append(hand)
        return hand

    def left(self, dead: Sequence[int], synced: Mapping[int, Mark]) -> np.ndarray[Any, Any]:
        """Return what dead ranks had been dealt, but for what they had synced."""
        parts = [np.empty(0, np.intp)]
        for rank in dead:
            number, count = max(self._since.get(rank, (0, 0)), synced.get(rank, (0, 0)))
            theirs = [hand for hand in self._kept if hand.number >= number and rank in hand.ranks]
            parts += [hand.numbers(rank)[count if hand.number == number else 0 :] for hand in theirs]
        return np.concatenate(parts)

    def end(self, synced: Mapping[int, Mark | None]) -> None:
        """End a pass. What a rank has not synced yet stays its own, unless it never syncs (None)."""
        self._since = {rank: mark or (self._next, 0) for rank, mark in synced.items()}
        oldest = min((number for number, _ in self._since.values()), default=self._next)
        self._kept = [hand for hand in self._kept if hand.number >= oldest]

    def forget(self) -> None:
        """Deal nothing of what there was again."""
        self.end(dict.fromkeys(self.ranks))
