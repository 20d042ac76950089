"""How far each rank has come in a deal, for the ranks that outlive it."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence

from .._job import world
from .._vectors.segment import Segment
from .hands import Mark

WORDS = struct.Struct("<QQ")  # a mark


class Tally:
    """The mark of each rank at its last sync, in memory that others can read after its death.

    Only the rank itself writes it, when what it has sent will be folded by others: a rank
    that is killed before that has come less far. One that is killed while it writes has reached some of the
    others, so those compare what each of them has read. Making it is collective.
    """

    def __init__(self, name: str) -> None:
        self._segment = Segment(WORDS.size, consistency="async", name=name)
        self._own: Mark | None = None
        self._heard: dict[int, Mark] = {}
        self._lock = threading.Lock()
        self.close = self._segment.close

    def publish(self, mark: Mark) -> None:
        """Say that this rank has come so far. Marks only grow; one may be left out."""
        if self._own is not None and mark <= self._own:
            return
        if self._lock.locked():  # by another thread, or below this signal handler
            return
        with self._lock:
            WORDS.pack_into(self._segment.buffer, 0, *mark)
            self._segment.scatter()
            self._own = mark

    def _listen(self) -> None:
        with self._lock:
            for message in self._segment.updates():
                number, count = WORDS.unpack(message.data)
                self._heard[message.rank] = number, count

    def agree(self, ranks: Sequence[int], where: str) -> tuple[dict[int, Mark | None], dict[int, Mark]]:
        """Return how far each rank is that lives, and how far those of ``ranks`` had come that do not. Collective.

        A call in which a rank of the one before is missing tells that it is dead. Nobody writes to
        what it has left, so all that is read after that call is final: it is told in the next, which
        is the last unless another rank is missing there.
        """
        while True:
            self._listen()
            alive = world.alive()
            dead = [[rank, *mark] for rank, mark in self._heard.items() if rank not in alive]
            told = world.allgather_in("malt.deal", [world.rank(), list(self._own or ()), dead], None, where)
            there = [rank for rank, _, _ in told]
            if there == ranks:
                break
            ranks = there
        marks = {rank: (own[0], own[1]) if own else None for rank, own, _ in told}
        last: dict[int, Mark] = {}
        for _, _, read in told:
            for rank, number, count in read:
                last[rank] = max(last.get(rank, (0, 0)), (number, count))
        return marks, last
