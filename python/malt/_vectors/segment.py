"""Segments: opaque bytes over a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .. import _lib
from .._job import world
from .._options import whole
from ..typing import Consistency
from .exchange import Exchange, options, receivers_of
from .graph import GraphLike


class Message(NamedTuple):
    """A message that another rank scattered."""

    data: bytes
    """A copy of the bytes."""
    rank: int
    """The sender."""
    clock: int
    """The sender's number of scatters, including this one."""
    age: int
    """This rank's clock minus the sender's; negative if the sender is ahead."""


class Segment(Exchange):
    """Bytes that a rank sends to other ranks over a graph: for data that is not a vector.

    Making a segment is collective: every rank makes the same segments in the same order.

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

    _instead = "bytes(s.buffer), and make a malt.Segment"

    def __init__(
        self, nbytes: int, *, graph: GraphLike = "all", consistency: Consistency = "bsp", name: str | None = None
    ) -> None:
        self.nbytes = _length("nbytes", nbytes, 2**62)
        world.init()
        made, raw = _lib.new_segment(self.nbytes, name, options(graph, consistency), None)
        self._raw = raw
        super().__init__(made)

    @property
    def buffer(self) -> memoryview:
        """The bytes, as a writable view without a copy; valid as long as it is referenced, even after `close`."""
        return self._raw.data

    def scatter(self, n: int | None = None, *, to: Iterable[int] | None = None, timeout: float | None = None) -> int:
        """Send the first ``n`` bytes; all by default.

        Parameters
        ----------
        n : int, optional
            Number of bytes.
        to, timeout
            As for `Vector.scatter`.

        Returns
        -------
        int
            Bytes sent: ``n`` times the number of receivers.

        Raises
        ------
        ValueError, TypeError, StateError, TimeoutError, PeerError
            As for `Vector.scatter`.
        """
        count = self.nbytes if n is None else _length("n", n, self.nbytes)
        return self._object.scatter(receivers_of(to), timeout, nbytes=count)

    def updates(self, *, wait: float | None = None, timeout: float | None = None) -> list[Message]:
        """Return the messages that have arrived. May wait, as `Vector.gather` does.

        Parameters
        ----------
        wait : float, optional
            As for `Vector.gather`: so many seconds for a message, if there is none.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Returns
        -------
        list of Message
            In the order of ranks. Each message is returned once.

        Raises
        ------
        StateError, TimeoutError, PeerError
            As for `Vector.gather`.
        """
        messages: list[Message] = []

        def take(updates: list[_lib.Update]) -> None:
            messages.extend(Message(u.data.tobytes(), u.rank, u.clock, u.age) for u in updates)

        if wait is not None:
            self._object.await_update(wait)
        self._object.gather_with(take, timeout)
        return messages

    def _facts(self) -> dict[str, object]:
        return {"holds": f"{self.nbytes} bytes", "bytes": self.nbytes, **super()._facts()}


def _length(name: str, value: int, most: int) -> int:
    return whole(name, value, 0, most, "expected a number of bytes", f"expected 0 to {most} bytes")
