"""Numbering the rows of texts, which have no table of contents: each rank counts those of its share of the bytes.

The counts of each go to all. Then every rank knows where every row is, to within a
segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from .files import File
from .rows import Rows
from .team import Team


@dataclass(frozen=True)
class Segment:
    """A piece of a file that begins and ends with a row. To its end, if `end` is None."""

    file: int
    start: int
    end: int | None
    rows: int


def numbered(files: list[File], rows: Rows, start: Callable[[int], int], team: Team) -> list[Segment]:
    """Return the segments of all files, in order. Collective.

    Parameters
    ----------
    start : callable
        The byte with which the rows of a file begin.
    """
    while True:
        numbering = _Numbering(files, rows, start, team)
        inside = team.share(numbering.quotes) if rows.quote and team.size > 1 else []
        if team.ranks == numbering.ranks:
            found = team.share(partial(numbering.counted, inside))
        if team.ranks == numbering.ranks:  # no rank has died meanwhile, of which the counts would be missing
            break
    segments = [Segment(f, a, None if b < 0 else b, n) for part in found for f, a, b, n in part]
    return sorted(segments, key=lambda s: (s.file, s.start))


class _Numbering:
    """What this rank counts."""

    def __init__(self, files: list[File], rows: Rows, start: Callable[[int], int], team: Team) -> None:
        self._files = files
        self._rows = rows
        self._start = start
        self._team = team
        self.ranks = team.ranks

    def _shares(self) -> Iterator[tuple[int, int, int | None]]:
        """Go through the file, first byte and end of what is this rank's to count; the end is None for all of it.

        The shares are equal parts of the bytes of all files. A file that cannot be
        divided belongs to the rank in whose share it begins.
        """
        sizes = [max(1, f.size or 1) for f in self._files]
        total = sum(sizes)
        place = self.ranks.index(self._team.rank)
        low, high = place * total // len(self.ranks), (place + 1) * total // len(self.ranks)
        at = 0
        for i, (file, size) in enumerate(zip(self._files, sizes, strict=True)):
            if not (at + size <= low or at >= high):
                if file.divisible:
                    yield i, max(0, low - at), min(size, high - at)
                elif low <= at:
                    yield i, 0, None
            at += size

    def quotes(self) -> list[tuple[int, int, int]]:
        """Count the quotes in this rank's shares: (file, first byte, number).

        A share runs from the byte before its first to the byte before its last, so
        that a row that begins with the share is seen to begin.
        """
        counts = []
        for i, low, high in self._shares():
            if high is not None:
                low, high = max(self._start(i), low - 1), max(self._start(i), high - 1)
                number = sum(block.count(self._rows.quote) for block in self._files[i].stream(low, high))
                counts.append((i, low, number))
        return counts

    def counted(self, inside: list[list[tuple[int, int, int]]]) -> list[tuple[int, int, int, int]]:
        """Count the rows that begin in this rank's shares: segments, with -1 for an end that is the file's."""
        odd = {(i, low): number % 2 for part in inside for i, low, number in part}
        shares = list(self._shares())
        self._team.progress.begin(
            "counting rows", sum((high or self._files[i].size or 0) - low for i, low, high in shares)
        )
        found = []
        for i, low, high in shares:
            if high is None:
                blocks = self._rows.whole(
                    self._files[i].stream(self._start(i), None, self._team.progress), self._files[i].name
                )
                found.append((i, self._start(i), -1, sum(map(self._rows.count, blocks))))
            else:
                size = self._files[i].size or 0
                a, b = self._first_row(i, low, odd), size if high == size else self._first_row(i, high, odd)
                found += self._segments_of(i, a, b)
        return found

    def _first_row(self, i: int, at: int, odd: dict[tuple[int, int], int]) -> int:
        """Return where the first row begins that begins at a byte or after it."""
        if at <= self._start(i):
            return self._start(i)
        at -= 1  # if this is a newline, the row begins right after it
        quoted = sum(number for (file, low), number in odd.items() if file == i and low < at) % 2
        for block in self._files[i].stream(at, None):
            # An end is a newline outside of quotes; only the first is of interest.
            if end := self._rows.first_end(block, quoted):
                return at + end
            at += len(block)
            if self._rows.quote:
                quoted ^= block.count(self._rows.quote) & 1
        return self._files[i].size or 0

    def _segments_of(self, i: int, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Divide the bytes between two rows in about 64 segments, and count the rows of each."""
        least = (end - start) // 64
        at, length, rows = start, 0, 0
        for block in self._rows.whole(self._files[i].stream(start, end, self._team.progress), self._files[i].name):
            length += len(block)
            rows += self._rows.count(block)
            if length >= least:
                yield i, at, at + length, rows
                at, length, rows = at + length, 0, 0
        if length:
            yield i, at, at + length, rows
