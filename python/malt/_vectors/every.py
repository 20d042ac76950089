"""Counts the calls of ``sync(every=)``."""

from __future__ import annotations

import sys
from types import CodeType, FrameType


class Calls:
    """The calls of one vector's `sync` since the last that exchanged, of each call in the source by itself.

    With one count for all, a loop with two such calls could exchange at the second one always.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], int] = {}  # of the other calls
        self._site = "", 0, 0
        self._count = 0
        self._code: CodeType | None = None
        self._instruction = -1

    def due(self, every: int) -> bool:
        """Count a call of the function that calls this one; tell whether it exchanges."""
        frame = sys._getframe(2)
        if frame.f_lasti != self._instruction or frame.f_code is not self._code:
            self._go_to(frame)
        self._count += 1
        if self._count < every:
            return False
        self._count = 0
        return True

    def _go_to(self, frame: FrameType) -> None:
        self._counts[self._site] = self._count
        self._code, self._instruction = frame.f_code, frame.f_lasti
        # The same for a line that is typed again, whose code is another object.
        self._site = self._code.co_filename, self._code.co_firstlineno, self._instruction
        self._count = self._counts.get(self._site, 0)
