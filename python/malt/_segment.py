"""Segments: opaque bytes over a graph."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NamedTuple

from . import _lib, _world
from ._exchange import Exchange, options, receivers_of
from ._graph import GraphLike
from .typing import Consistency

__all__ = ["Message", "Segment"]


class Message(NamedTuple):
    """What another rank scattered."""

    data: bytes
    """A copy of what it sent."""
    rank: int
    """The rank that sent it."""
    clock: int
    """How many scatters it had made, this one included."""
    age: int
    """This rank's clock minus that one; negative where the sender is ahead."""


class Segment(Exchange):
    """Bytes of this rank that other ranks read: for what is not a vector.

    Making a segment is collective, as making a vector is.

    Parameters
    ----------
    nbytes : int
        The largest message, in bytes.
    graph, consistency, name
        As for `Vector`.

    Raises
    ------
    ValueError, TypeError, MismatchError, OutOfMemoryError, TimeoutError, PeerError
        As for `Vector`.

    Examples
    --------
    >>> with malt.Segment(1024, consistency="async") as s:
    ...     s.buffer[:5] = b"hello"
    ...     s.scatter(5)                        # nobody to send it to
    ...     s.updates()
    0
    []
    """

    _instead = "bytes(s.buffer)"

    def __init__(
        self, nbytes: int, *, graph: GraphLike = "all", consistency: Consistency = "bsp", name: str | None = None
    ) -> None:
        self.nbytes = _length("nbytes", nbytes, 2**62)
        _world.init()
        made, raw = _lib.new_segment(self.nbytes, name, options(graph, consistency), None)
        self._raw = raw
        super().__init__(made)

    @property
    def buffer(self) -> memoryview:
        """The bytes, writable and without a copy; valid for as long as it is referenced, also after `close`."""
        return self._raw.data

    def scatter(self, n: int | None = None, *, to: Iterable[int] | None = None, timeout: float | None = None) -> int:
        """Send the first ``n`` bytes; all by default.

        Returns
        -------
        int
            Bytes sent: ``n`` times the receivers.

        Raises
        ------
        ValueError, StateError, TimeoutError, PeerError
            As `Vector.scatter`.
        """
        count = self.nbytes if n is None else _length("n", n, self.nbytes)
        return self._object.scatter(receivers_of(to), timeout, nbytes=count)

    def updates(self, *, timeout: float | None = None) -> list[Message]:
        """Take what has arrived, waiting as the consistency says.

        Returns
        -------
        list of Message
            In the order of ranks; each update is taken once.

        Raises
        ------
        StateError, TimeoutError, PeerError
            As `Vector.gather`.
        """
        messages: list[Message] = []

        def take(updates: list[_lib.Update]) -> None:
            messages.extend(Message(u.data.tobytes(), u.rank, u.clock, u.age) for u in updates)

        self._object.gather_with(take, timeout)
        return messages

    def __repr__(self) -> str:
        return self._repr(f"{self.nbytes} bytes")


def _length(name: str, value: int, most: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"malt: {name}={value!r}: a number of bytes is expected") from None
    if not 0 <= count <= most:
        raise ValueError(f"malt: {name}={value}: 0 to {most} bytes are expected")
    return count
