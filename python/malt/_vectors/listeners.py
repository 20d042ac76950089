"""Objects that hear when a vector has exchanged: a deal has to know which items are in the models of other ranks."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias


class Listener(Protocol):
    """What is told of the exchanges of all vectors of this rank."""

    def mark(self) -> Any:
        """Return where it is: what is being sent now contains all up to there."""

    def exchanged(self, mark: Any) -> None:
        """Hear that what was sent at ``mark`` will be folded by others, even if this rank dies now."""


Marks: TypeAlias = "list[tuple[Listener, Any]]"

listeners: list[Listener] = []
"""Empty in most jobs: the calls of vectors look at it each time."""


def marks() -> Marks:
    """Return where each listener is."""
    return [(listener, listener.mark()) for listener in listeners]
