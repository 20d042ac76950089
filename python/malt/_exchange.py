"""What vectors and segments have in common."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from types import TracebackType
from typing import NoReturn, TypeVar, cast

from . import _lib, _stats, _world
from ._graph import Graph, GraphLike, as_graph
from ._guide import lines
from ._options import joined
from .typing import Consistency

__all__ = ["Exchange", "options", "receivers_of"]

Self = TypeVar("Self", bound="Exchange")


def options(graph: GraphLike | None, consistency: str | None, **more: str | None) -> str:
    """Return the option string; what is None is left out."""
    spec, disconnected = (None, False) if graph is None else as_graph(graph, _world.size())
    allow = "true" if disconnected else None
    return joined(graph=spec, allow_disconnected=allow, consistency=consistency, **more)


def receivers_of(to: Iterable[int] | None) -> list[int] | None:
    """Check the numbers of ``to=``; whether they are receivers the library knows."""
    if to is None:
        return None
    try:
        ranks = [operator.index(rank) for rank in to]
    except TypeError:
        raise TypeError(f"malt: to={to!r}: a list of ranks is expected, such as [1, 2]") from None
    for rank in ranks:
        if not 0 <= rank < _world.size():
            raise ValueError(f"malt: to={to!r}: {rank} is not a rank; 0 to {_world.size() - 1} are")
    return ranks


class Exchange:
    """An object that is scattered over a graph."""

    def __init__(self, made: _lib.Object) -> None:
        self._object = made
        self._describe()
        made.name = f"{made.kind} {self.name!r}"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a copy would be nobody's in the job."""
        kind = f"malt.{type(self).__name__}"
        raise TypeError(
            lines(
                f"{self._object.name} cannot be copied or pickled",
                "it belongs to this rank and its job",
                f"Copy or save {self._instead}, and make a {kind} of it where one is needed.",
            )
        )

    _instead = "its values"
    """What is copied or saved in its place."""

    def _describe(self) -> None:
        """Learn the options in force from the library, which is the one to know."""
        self._described = dict(pair.split("=", 1) for pair in self._object.describe().split())

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._described["name"]

    @property
    def consistency(self) -> Consistency:
        """How far ranks may drift apart."""
        return cast("Consistency", self._described["consistency"])

    @property
    def graph(self) -> Graph:
        """Which rank sends to which."""
        return Graph(self._described["graph"], _world.size(), allow_disconnected=True)

    @property
    def receivers(self) -> list[int]:
        """Ranks that the next scatter goes to, in the graph's order."""
        return self._object.ranks("receivers")

    @property
    def senders(self) -> list[int]:
        """Ranks that this one hears from."""
        return self._object.ranks("senders")

    @property
    def clock(self) -> int:
        """How many times it has been scattered, or levelled up to by a collective call."""
        return self._object.clock()

    def stats(self) -> _stats.Stats:
        """Return what it has done so far, in total and per neighbour."""
        return _stats.stats(self._object)

    def close(self) -> None:
        """Leave it: other ranks no longer wait for this one in it. Not collective.

        Its memory stays for as long as it is referenced. Closing twice is fine.
        """
        self._object.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _repr(self, what: str, **more: object) -> str:
        shown = {"graph": self._described["graph"], "consistency": self.consistency, **more}
        words = ", ".join(f"{key}={value!r}" for key, value in shown.items())
        state = "closed" if self._object.closed else f"clock={self.clock}"
        return f"{type(self).__name__}({self.name!r}, {what}, {words}, {state})"
