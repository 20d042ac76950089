"""What vectors and segments have in common."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from types import TracebackType
from typing import NoReturn, TypeVar, cast

from .. import _frames, _lib
from .._guide import lines
from .._job import world
from .._options import joined
from ..typing import Consistency
from . import statistics
from .graph import Graph, GraphLike, as_graph

Self = TypeVar("Self", bound="Exchanged")


def options(graph: GraphLike | None, consistency: str | None, **more: str | None) -> str:
    """Return the option string; what is None is left out."""
    spec, disconnected = (None, False) if graph is None else as_graph(graph, world.size())
    allow = "true" if disconnected else None
    return joined(graph=spec, allow_disconnected=allow, consistency=consistency, **more)


def receivers_of(to: Iterable[int] | None) -> list[int] | None:
    """Check the numbers of ``to=``; whether they are receivers the library knows."""
    if to is None:
        return None
    try:
        ranks = [operator.index(rank) for rank in to]
    except TypeError:
        raise TypeError(lines(f"to={to!r}", "expected a list of ranks, such as [1, 2]")) from None
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(lines(f"to={to!r}", f"{rank} is not a rank of this job: 0 to {world.size() - 1} are"))
    return ranks


class Exchanged:
    """What is exchanged over a graph: an object itself, or another one that it holds."""

    @property
    def _made(self) -> Exchange:
        """The object that is exchanged."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._made._described["name"]

    @property
    def consistency(self) -> Consistency:
        """How far ranks may drift apart."""
        return cast("Consistency", self._made._described["consistency"])

    @property
    def graph(self) -> Graph:
        """Which ranks send to which."""
        return Graph(self._made._described["graph"], world.size(), allow_disconnected=True)

    @property
    def receivers(self) -> list[int]:
        """The receivers of the next scatter, in the graph's order."""
        return self._made._object.ranks("receivers")

    @property
    def senders(self) -> list[int]:
        """The ranks that send to this one."""
        return self._made._object.ranks("senders")

    @property
    def clock(self) -> int:
        """The number of scatters; collective calls set it to the largest of all ranks."""
        return self._made._object.clock()

    def stats(self) -> statistics.Stats:
        """Return counts and times so far, in total and for each neighbour."""
        return statistics.stats(self._made._object)

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Exchange(Exchanged):
    """An object that is scattered over a graph."""

    def __init__(self, made: _lib.Object) -> None:
        self._object = made
        self._describe()
        if re.fullmatch(rf"{made.kind}-\d+", self.name):  # the library's, of one without a name
            made.name = self.name
            _frames.unnamed[made.name] = self
        else:
            made.name = f"{made.kind} {self.name!r}"
        self._tell()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a copy would be nobody's in the job."""
        raise TypeError(
            lines(
                f"{self._object.name} cannot be copied or pickled",
                "it belongs to this rank and its job",
                f"Copy or save {self._instead} of it where one is needed.",
            )
        )

    _instead = "its values, and make a new one"
    """What is copied or saved in its place, and what is made."""

    def _describe(self) -> None:
        """Learn the options in force from the library, which is the one to know."""
        self._described = dict(pair.split("=", 1) for pair in self._object.describe().split())

    def _facts(self) -> dict[str, object]:
        """Return what it holds, how many bytes these are, and the options in force."""
        return {"graph": self._described["graph"], "consistency": self.consistency}

    def _tell(self) -> None:
        """Tell the launcher, for its report."""
        world.made(self.name, {key: getattr(value, "__name__", str(value)) for key, value in self._facts().items()})

    @property
    def _made(self) -> Exchange:
        return self

    @property
    def called(self) -> str:
        """What the library calls it in errors."""
        return self._object.name

    def close(self) -> None:
        """Close it: other ranks no longer wait for this one in it. Not collective.

        Its memory stays as long as it is referenced. In a job on several machines that goes on
        when ranks die, what came from others in lock-step stays until the next collective call:
        another rank may lack it. A second call has no effect.
        """
        self._object.close()

    def __repr__(self) -> str:
        return self._repr(self._facts())

    def _repr(self, facts: dict[str, object]) -> str:
        (_, what), _, *shown = facts.items()
        words = ", ".join(f"{key}={value!r}" for key, value in shown)
        state = "closed" if self._object.closed else f"clock={self.clock}"
        return f"{type(self).__name__}({self.name!r}, {what}, {words}, {state})"
