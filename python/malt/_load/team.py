"""The ranks that read together, or one that reads alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import _world
from .._errors import MismatchError

__all__ = ["Team"]

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
    """

    def __init__(self, together: bool) -> None:
        self.rank = _world.rank() if together else 0
        self.size = _world.size() if together else 1

    def share(self, work: Callable[[], T], timeout: float | None = PATIENCE) -> list[T]:
        """Do some work and return what it gave on each rank, in rank order. Collective.

        What may be returned is what ``malt.allgather`` carries. If the work fails on
        some ranks, no rank is left waiting: those raise what happened to them, the
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
        message = None if failure is None else f"{type(failure).__name__}: {failure}"
        told = _world.allgather([message, value], timeout=timeout)
        if failure is not None:
            raise failure
        for rank, (message, _) in enumerate(told):
            if message is not None:
                raise MismatchError(f"malt: load failed on rank {rank}: {message}")
        return [value for _, value in told]
