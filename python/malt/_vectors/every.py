"""Counts the calls of ``sync(every=)``."""

from __future__ import annotations

import sys
from typing import Any


class Calls:
    """The calls of one vector's `sync` since the last that exchanged, of each call in the source by itself.

    With one count for all, a loop with two such calls could exchange at the second one always.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], int] = {}  # of the other calls
        self._site = "", 0, 0
        self.last: list[Any] = [None, -1, 0, None]  # code, instruction, count and weight; ``quick.c`` has it, too

    def due(self, every: int) -> bool:
        """Count a call of the function that calls this one; tell whether it exchanges."""
        frame, last = sys._getframe(2), self.last
        if frame.f_lasti != last[1] or frame.f_code is not last[0]:
            self._counts[self._site] = last[2]
            # The same for a line that is typed again, whose code is another object.
            self._site = frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lasti
            last[:3] = frame.f_code, frame.f_lasti, self._counts.get(self._site, 0)
        last[2] += 1
        if last[2] < every:
            return False
        last[2] = 0
        return True

    @property
    def weight(self) -> float:
        """The weight of the last scatter or sync, also of one that was not due."""
        return 1.0 if self.last[3] is None else float(self.last[3])

    @weight.setter
    def weight(self, weight: float) -> None:
        self.last[3] = weight
