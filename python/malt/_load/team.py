"""The ranks that read together, or one that reads alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import _world
from .._errors import MismatchError

__all__ = ["Team"]

T = TypeVar("T")


class Team:
    """Who takes part in a load.

    Parameters
    ----------
    together : bool
        Whether all ranks take part; otherwise this one is alone and gets everything.
    """

    def __init__(self, together: bool) -> None:
        self.rank = _world.rank() if together else 0
        self.size = _world.size() if together else 1

    def share(self, work: Callable[[], T]) -> list[T]:
        """Do some work and return what it gave on each rank, in rank order. Collective.

        What may be returned is what ``malt.allgather`` carries. If the work fails on
        some ranks, no rank is left waiting: those raise what happened to them, the
        others a MismatchError with the first of these messages.
        """
        if self.size == 1:
            return [work()]
        value: Any = None
        failure: Exception | None = None
        try:
            value = work()
        except Exception as e:
            failure = e
        told = _world.allgather([None if failure is None else f"{type(failure).__name__}: {failure}", value])
        if failure is not None:
            raise failure
        for rank, (message, _) in enumerate(told):
            if message is not None:
                raise MismatchError(f"malt: load failed on rank {rank}: {message}")
        return [value for _, value in told]
