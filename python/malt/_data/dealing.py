"""Deals: the loop over the items, and what is done where a pass of it ends."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from .._errors import StateError, UnsupportedError
from .._guide import lines
from .._job import world
from .._vectors.listeners import listeners
from ..typing import Even, Order
from .hands import Hand, Hands, Mark
from .tally import Tally
from .turns import Cut

T = TypeVar("T")
Gets = TypeVar("Gets", covariant=True)

_made = itertools.count(1)  # the deals of several ranks: all make the same


class Source(Protocol[Gets]):
    """Where a deal has its items from."""

    batch: int
    """How many of them the loop gets at a time; the last time it may be fewer."""

    def take(self, own: Cut) -> Iterator[Gets]:
        """Go through these items, in this order."""


class At(NamedTuple):
    """Where a deal is, in one object: another thread may ask."""

    hand: int
    items: int  # of this rank in this hand
    steps: int  # in which the loop gets them
    before: int  # steps of this pass in earlier hands
    ahead: Iterator[bool]  # knows how many of the steps have yet to come

    def step(self) -> int:
        return self.steps - operator.length_hint(self.ahead)


class Deal(Generic[T]):
    """The items that `malt.deal` and `malt.torch.deal` hand out: what a loop goes through.

    Each loop over it makes the next ``epochs`` passes. Only these functions make one.

    Attributes
    ----------
    epoch : int
        The number of the pass, from 0; further loops count on.
    epochs : int
        The number of passes of a loop.
    order, seed, even
        As given to `malt.deal`.
    """

    epoch: int

    def __init__(
        self, source: Source[T], n: int, epochs: int, order: Order, seed: int | None, even: Even | None
    ) -> None:
        self.epoch = 0
        self.epochs = epochs
        self.order = order
        self.seed = seed
        self.even = even
        self._source = source
        self._passes = 0  # begun
        self._at = At(0, 0, 0, 0, itertools.repeat(True, 0))
        self._loop: object = None  # the newest one, until its last pass is over
        if world.replaces():
            raise UnsupportedError(
                lines(
                    "malt.deal does not go with on_death=replace",
                    "a rank that joins again does not know what the others have dealt",
                    "Use malt.shard, and take v.clock for the step; or --on-death continue.",
                )
            )
        ranks, self._tally = [0], None
        if world.size() > 1:
            chosen = {"epochs": epochs, "batch_size": source.batch, "order": order, "seed": seed, "even": even}
            given = ", ".join(
                [f"{n} items", *(f"{key}={value!r}" for key, value in chosen.items() if value is not None)]
            )
            ranks = world.allgather_in("malt.deal", world.rank(), None, given)
        if world.survives():
            self._tally = Tally(f"deal-{next(_made)}")
            weakref.finalize(self, self._tally.close).atexit = False
        self._hands = Hands(n, order, seed, even, ranks)

    @property
    def position(self) -> int:
        """The number of items (with PyTorch: batches) of this pass that this rank has got, the present one included."""
        return self._at.before + self._at.step()

    def __len__(self) -> int:
        """Return how many items (with PyTorch: batches) this rank gets in a loop if no other dies."""
        hands = self._hands
        count = Hand(0, hands.ranks, hands.n, None, self.order, self.seed, self.even).count(world.rank())
        return self.epochs * -(-count // self._source.batch)

    def __iter__(self) -> Iterator[T]:
        # All in C while a hand lasts: an item costs what it costs in a loop over a shard.
        return itertools.chain.from_iterable(self._hand_out())

    def _hand_out(self) -> Iterator[Iterator[T]]:
        """Go through the hands of some passes."""
        if self._loop is not None:
            self._hands.forget()  # the loop before was left within a pass, by all ranks
        loop = self._loop = object()
        if self._tally is not None:
            listeners.append(self)
        try:
            for _ in range(self.epochs):
                self.epoch, self._passes = self._passes, self._passes + 1
                hand: Hand | None = self._hands.everything(self.epoch)
                before = 0
                while hand is not None:
                    yield self._take(hand, before)
                    if self._loop is not loop:
                        raise StateError(
                            lines(
                                "another loop over this deal has begun",
                                "a deal has one position, so one loop at a time",
                                "Make a malt.deal for each loop.",
                            )
                        )
                    before += self._at.steps
                    hand = self._meet()
            self._loop = None
        finally:
            if self._tally is not None:
                listeners.remove(self)

    def _take(self, hand: Hand, before: int) -> Iterator[T]:
        count = hand.count(world.rank())
        steps = -(-count // self._source.batch)
        ahead = itertools.repeat(True, steps)
        items = self._source.take(hand.of(world.rank()))
        self._at = At(hand.number, count, steps, before, ahead)
        return itertools.compress(items, ahead)  # takes of ahead after it has got an item

    def _meet(self) -> Hand | None:
        """Wait for the others, and return what deaths have left of this pass; None where it is over. Collective."""
        hands, where = self._hands, f"the end of pass {self.epoch}"
        if world.size() > 1:
            world.allgather_in("malt.deal", None, None, where)  # most of the wait
        if self._tally is None:
            hands.forget()
            return None
        synced, last = self._tally.agree(hands.ranks, where)
        dead = [rank for rank in hands.ranks if rank not in synced]
        hands.ranks = list(synced)
        items = hands.left(dead, last)
        if len(items):
            return hands.rest(items)
        hands.end(synced)
        return None

    # What a tally is told, as a listener.

    def mark(self) -> Mark:
        """Return how far this rank is."""
        at = self._at
        return at.hand, min(at.step() * self._source.batch, at.items)

    def exchanged(self, mark: Mark) -> None:
        """Publish it."""
        assert self._tally is not None
        self._tally.publish(mark)

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed={self.seed}"
        even = "" if self.even is None else f", even={self.even!r}"
        where = f"epoch={self.epoch}, position={self.position}"
        return f"<deal of {self._hands.n} items, epochs={self.epochs}, order={self.order!r}{seed}{even}: {where}>"
