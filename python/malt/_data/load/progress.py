"""How far a long load is: a bar of tqdm on the standard error of rank 0, or a line where tqdm is missing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TextIO

QUIET = 2.0
"""Seconds that a load may take without showing anything."""


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
        self._clock = clock
        self._from = clock() + (0.0 if wanted else QUIET)
        self._title = title
        self._what = ""
        self._done = self._total = 0
        self._bar: Any = None

    def begin(self, what: str, total: int) -> None:
        """Start a stage of ``total`` bytes; 0 if nobody knows."""
        self.end()
        self._what, self._done, self._total = what, 0, total

    def add(self, count: int) -> None:
        """Count bytes."""
        if self._bar is None and self._shown and self._clock() >= self._from:
            self._bar = _new_bar(f"{self._title}: {self._what}", self._total, self._done, self._stream)
        self._done += count
        if self._bar is not None:
            self._bar.update(count)

    def end(self) -> None:
        """Wipe the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _new_bar(title: str, total: int, done: int, stream: TextIO) -> Any:
    try:
        tqdm: Any = import_module("tqdm")
    except ImportError:
        return _Line(title, total, done, stream)
    return tqdm.tqdm(
        desc=title,
        total=total or None,
        initial=done,
        unit="B",
        unit_scale=True,
        leave=False,
        file=stream,
        mininterval=0.1,
    )


class _Line:
    """What `Progress` uses of tqdm, where that is missing."""

    def __init__(self, title: str, total: int, done: int, stream: TextIO) -> None:
        self._title, self._total, self._done, self._stream = title, total, done, stream
        self._width = 0
        self._next = 0.0

    def update(self, count: int) -> None:
        self._done += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            of = f" of {self._total / 1e6:,.0f} MB, {self._done / self._total:.0%}" if self._total else " MB"
            self._write(f"{self._title} {self._done / 1e6:,.0f}{of}")

    def close(self) -> None:
        self._write("")
        self._write("")  # the cursor is at the left again

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)


def _is_watched(stream: TextIO) -> bool:
    """Return whether a person sees the stream as it is written: a terminal, or a cell of a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
