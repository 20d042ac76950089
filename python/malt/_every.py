"""Counts the calls of ``sync(every=)``."""

from __future__ import annotations

import sys

__all__ = ["Calls"]


class Calls:
    """The calls of one vector's `sync` since the last that exchanged, of each line of the user's by itself.

    With one count for all lines, a loop with two such calls could exchange at the second one always.
    """

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, int], int] = {}

    def due(self, every: int) -> bool:
        """Count a call of the function that calls this one; tell whether it exchanges."""
        frame = sys._getframe(2)
        code = frame.f_code
        site = code.co_filename, code.co_firstlineno, frame.f_lasti  # the same for a line that is typed again
        calls = self._since.get(site, 0) + 1
        due = calls >= every
        self._since[site] = 0 if due else calls
        return due
