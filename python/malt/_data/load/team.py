"""The ranks that read together, or one that reads alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..._errors import MismatchError
from ..._guide import lines
from ..._job import world
from .progress import Progress

T = TypeVar("T")

PATIENCE = 24 * 3600.0
"""Seconds for which ranks that have begun to load wait for one another.

Not the job's timeout: reading takes as long as it takes, and a rank that dies
meanwhile is noticed at once.
"""


class Team:
    """The ranks that take part in a load.

    Parameters
    ----------
    together : bool
        Whether all ranks take part; otherwise this one is alone and gets everything.
    progress : callable
        Returns what shows the progress of a rank.
    """

    def __init__(self, together: bool, progress: Callable[[int], Progress]) -> None:
        self.rank = world.rank() if together else 0
        self.size = world.size() if together else 1
        self.ranks = list(range(self.size))
        """The ranks that took part in the last `share`: all, unless some have died."""
        self.progress = progress(self.rank)

    def share(self, work: Callable[[], T], timeout: float | None = PATIENCE) -> list[T]:
        """Do some work and return what it gave on each of `ranks`, in their order. Collective.

        The work may return anything that ``malt.allgather`` carries. If it fails on
        some ranks, no rank is left waiting: those raise their own error, the
        others a MismatchError with the first of these messages. A timeout of None is the
        job's: for the first meeting, to which a rank may fail to come.
        """
        if self.size == 1:
            return [work()]
        value: Any = None
        failure: Exception | None = None
        try:
            value = work()
        except Exception as e:
            failure = e
        message = None if failure is None else _told(failure)
        told = world.allgather([self.rank, message, value], timeout=timeout)
        if failure is not None:
            raise failure
        for rank, message, _ in told:
            if message is not None:
                raise MismatchError(lines(f"load failed on rank {rank}: {message}"))
        self.ranks = [rank for rank, _, _ in told]
        return [value for _, _, value in told]

    @property
    def first(self) -> bool:
        """Whether this rank does what one of them does."""
        return self.rank == self.ranks[0]


def _told(failure: Exception) -> str:
    """Return what other ranks say of an exception after the name of the call."""
    text = str(failure)
    return text.removeprefix("malt: load: ") if text.startswith("malt: ") else f"{type(failure).__name__}: {text}"
