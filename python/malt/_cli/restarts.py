"""Starting ranks again that died (``malt run --on-death replace``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from malt._cli.terminal import Terminal
from malt._ranks.launch import Job
from malt._ranks.rank import Rank

RESTARTS = 3
"""How often each rank is started again by default."""


class Restarts:
    """Starts another process in the place of each rank that dies, up to a number of times.

    All of them take part again, or none does: once one rank has died too often, no other is started again
    either.

    Parameters
    ----------
    job : Job
        The ranks.
    terminal : Terminal
        Gets the notes.
    start : callable
        Starts the rank of a number, as the n-th start in the place of a dead rank.
    most : int
        How often each rank is started again.
    """

    def __init__(self, job: Job, terminal: Terminal, start: Callable[[int, int], None], most: int) -> None:
        self._terminal = terminal
        self._start = start
        self._most = most
        self._starts: Counter[int] = Counter()
        self._ended = False
        job.replace, job.returned = self.died, self.returned

    def died(self, rank: Rank) -> None:
        """Start it again."""
        if self._ended or rank.late:
            return
        if self._starts[rank.number] == self._most:
            self._ended = True
            self._terminal.note(
                f"rank {rank.number} is not started again: it has been {self._most} times (--max-restarts); "
                "nor is any other rank from now on"
            )
            return
        self._starts[rank.number] += 1
        self._terminal.note(f"rank {rank.number} is started again")
        self._start(rank.number, self._starts.total())

    def returned(self, rank: Rank) -> None:
        """Say that it takes part again."""
        self._terminal.note(f"rank {rank.number} takes part again")
