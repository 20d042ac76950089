"""What the ranks write, line by line, with the rank in front.

All of it is bytes: a rank may write anything.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

LONGEST = 1 << 16
"""A line longer than this many bytes is shown in pieces, so that memory stays bounded."""

PROGRESS = 1.0
"""Seconds between two showings of a line that is rewritten with carriage returns."""

_KEPT = 400  # lines of standard error that are remembered for each rank
_WIDEST = 2000  # bytes that are remembered of a line
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)  # of terminals; none is red
_LINKS = (b"The above exception was the direct cause", b"During handling of the above exception")
_CRASH = b"Fatal Python error:"
_BEFORE_CRASH = 3  # lines, where compiled code may have said why, such as "free(): invalid pointer"
_STARTS = (b"Traceback (most recent call last)", b"  + Exception Group Traceback", _CRASH)


class Lines:
    """Cuts a stream into whole lines.

    A line that a progress bar rewrites (carriage returns) is reduced to what a
    terminal would show in the end, and on the way to one showing a second.

    Parameters
    ----------
    progress : float
        The seconds between those showings; with infinity there are none.
    """

    def __init__(self, progress: float = PROGRESS) -> None:
        self._every = progress
        self._part = b""  # of a line that has not ended
        self._shown = float("-inf")
        self._rewritten = False  # of that line something has been shown

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that data completes, without their line ends."""
        *ended, self._part = (self._part + data).split(b"\n")
        lines = [_visible(line) for line in ended]
        if lines:
            if self._rewritten and not lines[0]:
                del lines[0]  # the end of a line that has been shown
            self._rewritten = False
        if b"\r" in self._part:
            lines += self._progress()
        if len(self._part) >= LONGEST:
            lines.append(self._part)
            self._part = b""
        return lines

    def _progress(self) -> list[bytes]:
        before, _, after = self._part.rpartition(b"\r")
        newest = _visible(before)
        if not after and not before.strip():
            return []
        if newest.strip() and self._every < math.inf and time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            self._part, self._rewritten = after, True
            return [newest]
        self._part = newest + b"\r" + after
        return []

    @property
    def rewritten(self) -> bytes:
        """What a terminal shows now of a line that is being rewritten; else nothing."""
        return _visible(self._part) if b"\r" in self._part else b""

    def rest(self) -> list[bytes]:
        """Return the last line, if the stream ended in the middle of it."""
        part, self._part = _visible(self._part), b""
        return [part] if part else []


def _visible(line: bytes) -> bytes:
    """Return what is left of a line after its carriage returns."""
    if b"\r" not in line:
        return line
    return next((part for part in reversed(line.split(b"\r")) if part.strip()), b"")


class Display:
    """Puts the rank in front of every line, keeps logs, and remembers last words.

    Parameters
    ----------
    size : int
        How many ranks there are.
    show : callable
        Called with (1 for stdout or 2 for stderr, whole lines).
    colour : pair of bool
        Whether to colour the prefixes on stdout and on stderr.
    logs : mapping of files, optional
        Of a rank, by its number: gets the lines without their prefix.
    letter : str
        What stands before the number, such as ``h`` where it is that of a host.
    ranks : int
        From this number on they are witnesses: ``w0``.
    """

    def __init__(
        self,
        size: int,
        show: Callable[[int, bytes], None],
        colour: tuple[bool, bool] = (False, False),
        logs: Mapping[int, BinaryIO] | None = None,
        letter: str = "",
        ranks: int = sys.maxsize,
    ) -> None:
        self._show = show
        self._colour = colour
        self._logs = logs or {}
        self._names = [f"w{number - ranks}" if number >= ranks else f"{letter}{number}" for number in range(size)]
        self._width = max(map(len, self._names[:ranks]))
        self._lines = [{1: Lines(), 2: Lines()} for _ in range(size)]
        self._kept: list[deque[tuple[int, bytes]]] = [deque(maxlen=_KEPT) for _ in range(size)]
        self._count = 0  # lines shown so far
        self.log_error: OSError | None = None

    def __call__(self, rank: int, stream: int, data: bytes) -> None:
        """Take what a rank wrote; empty bytes are the end of the stream."""
        source = self._lines[rank][stream]
        lines = source.feed(data) if data else source.rest()
        if lines:
            self.log(rank, lines)
            self.put(rank, stream, lines)

    def put(self, rank: int, stream: int, lines: Sequence[bytes]) -> None:
        """Show whole lines as a rank's."""
        if stream == 2:
            self._kept[rank].extend((self._count + i, line[:_WIDEST]) for i, line in enumerate(lines))
        self._count += len(lines)
        self._show(stream, self.prefixed(rank, stream, lines))

    def prefixed(self, rank: int, stream: int, lines: Sequence[bytes]) -> bytes:
        """Return whole lines with the rank in front of each."""
        prefix = b"[%*s] " % (self._width, self._names[rank].encode())
        if self._colour[stream - 1]:
            prefix = b"\x1b[%dm%s\x1b[0m " % (_COLOURS[rank % len(_COLOURS)], prefix[:-1])
        return b"%s%s\n" % (prefix, (b"\n" + prefix).join(lines))

    def log(self, rank: int, lines: Sequence[bytes]) -> None:
        """Write whole lines into the log of a rank, if it has one."""
        if rank in self._logs and self.log_error is None:
            try:
                self._logs[rank].write(b"\n".join([*lines, b""]))
            except OSError as error:  # no space, most likely: the job is worth more than its log
                self.log_error = error

    def last_words(self, rank: int, again: bool = False) -> bytes:
        """Return the last traceback of a rank, or its last lines on stderr.

        Empty if it wrote none, or, without `again`, if they are what was shown last anyway.
        """
        kept = list(self._kept[rank])
        block = kept[_last_block([line for _, line in kept]) :]
        if not block or (not again and self._count - block[0][0] == len(block)):
            return b""
        return self.prefixed(rank, 2, [line for _, line in block])


def _last_block(lines: Sequence[bytes]) -> int:
    """Return where the last traceback begins, with what led to it; else the last ten lines."""
    starts = [i for i, line in enumerate(lines) if line.startswith(_STARTS)]
    if not starts:
        return max(0, len(lines) - 10)
    first = starts.pop()
    if lines[first].startswith(_CRASH):
        return max(0, first - _BEFORE_CRASH)
    while starts and any(line.startswith(_LINKS) for line in lines[max(starts[-1], first - 3) : first]):
        first = starts.pop()
    return first
