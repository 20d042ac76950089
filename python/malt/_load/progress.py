"""How far a long load is: one line on the standard error of rank 0."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Progress"]

QUIET = 2.0
"""Seconds that a load may take without showing anything."""

WIDTH = 30


class Progress:
    """A bar that appears when a load turns out to be long, and is wiped away at its end.

    Parameters
    ----------
    title : str
        What is read.
    wanted : bool, optional
        None: on rank 0, if standard error is a terminal or a notebook.
    rank : int
        Only rank 0 shows it.
    """

    def __init__(
        self,
        title: str,
        wanted: bool | None,
        rank: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = rank == 0 and (_is_watched(self._stream) if wanted is None else wanted)
        self._title = title
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + (0.0 if wanted else QUIET)
        self._what = ""
        self._done = self._total = 0
        self._drawn = 0

    def begin(self, what: str, total: int) -> None:
        """Start a stage of ``total`` bytes; 0 if nobody knows."""
        self._what, self._done, self._total = what, 0, total
        self.add(0)

    def add(self, count: int) -> None:
        """Count bytes, and show it ten times a second."""
        self._done += count
        if self._shown and self._clock() >= self._next:
            self._next = self._clock() + 0.1
            self._draw()

    def end(self) -> None:
        """Wipe the line away."""
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _draw(self) -> None:
        line = f"{self._title}: {self._what} {self._done / 1e6:,.0f}"
        if self._total:
            share = min(1.0, self._done / self._total)
            full = round(share * WIDTH)
            line += f" of {self._total / 1e6:,.0f} MB [{'#' * full}{'.' * (WIDTH - full)}] {share:4.0%}"
        else:
            line += " MB"
        line += f" {self._clock() - self._begun:.0f} s"
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = max(self._drawn, len(line))


def _is_watched(stream: TextIO) -> bool:
    """Return whether a person sees the stream as it is written: a terminal, or a cell of a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
