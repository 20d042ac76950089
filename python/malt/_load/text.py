"""What the text formats share: finding this rank's rows in files that have no table of contents.

The rows of a text are numbered by counting newlines, each rank in its share of the
bytes. Then every rank knows where every row is to within a segment, and a rank that
needs a block of rows reads the segments that hold it. What needs no numbers (every
size-th row), or has no beginning but the first byte (compressed), is read in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from .._parts import Cut
from .files import BOM, File
from .progress import Progress
from .rows import Rows
from .team import Team

__all__ = ["MalformedError", "Text"]


class MalformedError(Exception):
    """A row that cannot be read: the how-manieth of those that were to be, and why."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


@dataclass(frozen=True)
class Segment:
    """A piece of a file that begins and ends with a row. To its end, if `end` is None."""

    file: int
    start: int
    end: int | None
    rows: int


@dataclass(frozen=True)
class Piece:
    """Rows that have been picked from one block: their lines, and which of the file's rows they are."""

    text: bytes
    file: int
    numbers: range | np.ndarray[tuple[int], np.dtype[np.intp]]

    def __len__(self) -> int:
        return len(self.numbers)


class Text:
    """Files of rows of text.

    Parameters
    ----------
    files : list of File
    rows : Rows
        How a text is made of rows.
    header : callable, optional
        Given a file and the byte after its byte order mark, return the byte with
        which its rows begin.
    """

    def __init__(
        self,
        files: list[File],
        rows: Rows,
        team: Team,
        progress: Progress,
        header: Callable[[File, int], int] = lambda file, start: start,
    ) -> None:
        self.files = files
        self.rows = rows
        self._header = header
        self._starts: dict[int, int] = {}
        self.team = team
        self.progress = progress
        self._segments: list[Segment] | None = None

    def start(self, i: int) -> int:
        """Return the byte of a file with which its rows begin."""
        if i not in self._starts:
            with self.files[i].plain() as (f, _):
                mark = len(BOM) if f.read(len(BOM)) == BOM else 0
            self._starts[i] = self._header(self.files[i], mark)
        return self._starts[i]

    # ---------------------------------------------------------- numbering

    def count(self) -> int:
        """Return the number of rows. Collective: each rank counts those of its share of the bytes."""
        inside = self.team.share(self._quotes) if self.rows.quote and self.team.size > 1 else []
        found = self.team.share(lambda: self._counted(inside))
        segments = [Segment(f, a, None if b < 0 else b, n) for part in found for f, a, b, n in part]
        self._segments = sorted(segments, key=lambda s: (s.file, s.start))
        return sum(s.rows for s in self._segments)

    def _shares(self, rank: int) -> Iterator[tuple[int, int, int | None]]:
        """Go through the file, first byte and end of what is a rank's to count; the end is None for all of it.

        The shares are equal parts of the bytes of all files. A file that cannot be
        divided belongs to the rank in whose share it begins.
        """
        sizes = [max(1, f.size or 1) for f in self.files]
        total = sum(sizes)
        low, high = rank * total // self.team.size, (rank + 1) * total // self.team.size
        at = 0
        for i, (file, size) in enumerate(zip(self.files, sizes, strict=True)):
            if not (at + size <= low or at >= high):
                if file.divisible:
                    yield i, max(0, low - at), min(size, high - at)
                elif low <= at:
                    yield i, 0, None
            at += size

    def _quotes(self) -> list[tuple[int, int, int]]:
        """Count the quotes in this rank's shares: (file, first byte, number).

        A share runs from the byte before its first to the byte before its last, so
        that a row that begins with the share is seen to begin.
        """
        counts = []
        for i, low, high in self._shares(self.team.rank):
            if high is not None:
                low, high = max(self.start(i), low - 1), max(self.start(i), high - 1)
                number = sum(block.count(self.rows.quote) for block in self.files[i].stream(low, high))
                counts.append((i, low, number))
        return counts

    def _counted(self, inside: list[list[tuple[int, int, int]]]) -> list[tuple[int, int, int, int]]:
        """Count the rows that begin in this rank's shares: segments, with -1 for an end that is the file's."""
        odd = {(i, low): number % 2 for part in inside for i, low, number in part}
        shares = list(self._shares(self.team.rank))
        self.progress.begin("counting rows", sum((high or self.files[i].size or 0) - low for i, low, high in shares))
        found = []
        for i, low, high in shares:
            if high is None:
                blocks = self.rows.whole(self.files[i].stream(self.start(i), None, self.progress), self.files[i].name)
                found.append((i, self.start(i), -1, sum(map(self.rows.count, blocks))))
            else:
                size = self.files[i].size or 0
                a, b = self._first_row(i, low, odd), size if high == size else self._first_row(i, high, odd)
                found += self._segments_of(i, a, b)
        return found

    def _first_row(self, i: int, at: int, odd: dict[tuple[int, int], int]) -> int:
        """Return where the first row begins that begins at a byte or after it."""
        if at <= self.start(i):
            return self.start(i)
        at -= 1  # if this is a newline, the row begins right after it
        quoted = sum(number for (file, low), number in odd.items() if file == i and low < at) % 2
        seen = bytearray(self.rows.quote if quoted else b"")
        length = len(seen)
        for block in self.files[i].stream(at, None):
            seen += block
            # An end is a newline outside of quotes; only the first is of interest.
            end = self.rows.first_end(bytes(seen))
            if end:
                return at + end - length
        return self.files[i].size or 0

    def _segments_of(self, i: int, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Divide the bytes between two rows in about 64 segments, and count the rows of each."""
        least = (end - start) // 64
        at, length, rows = start, 0, 0
        for block in self.rows.whole(self.files[i].stream(start, end, self.progress), self.files[i].name):
            length += len(block)
            rows += self.rows.count(block)
            if length >= least:
                yield i, at, at + length, rows
                at, length, rows = at + length, 0, 0
        if length:
            yield i, at, at + length, rows

    # ------------------------------------------------------------ reading

    def pieces(self, cut: Cut) -> Iterator[Piece]:
        """Go through the rows of a cut, block by block; shuffled ones in the order of the files."""
        wanted = cut if isinstance(cut, slice) else np.sort(cut)
        runs = list(self._runs(wanted))
        self.progress.begin("reading", sum((s.end or self.files[s.file].size or 0) - s.start for s, _, _ in runs))
        row = 0  # of all files together
        first = 0  # row of the file that is being read
        file = -1
        for segment, begin, of_file in runs:
            row = row if begin is None else begin
            if segment.file != file:
                file = segment.file
                first = row if of_file is None else of_file
            name = self.files[file].name
            stream = self.files[file].stream(segment.start, segment.end, self.progress)
            for block in self.rows.whole(stream, name):
                number = self.rows.count(block)
                mine = _within(wanted, row, number)
                if len(mine):
                    text = block
                    if len(mine) < number or not self.rows.is_plain(block):
                        lines = self.rows.lines(block)
                        text = b"\n".join(
                            lines[mine.start : mine.stop : mine.step]
                            if isinstance(mine, range)
                            else [lines[i] for i in mine]
                        )
                    shift = row - first
                    numbers = (
                        range(mine.start + shift, mine.stop + shift, mine.step)
                        if isinstance(mine, range)
                        else mine + shift
                    )
                    yield Piece(text, file, numbers)
                row += number
                if isinstance(wanted, slice) and wanted.stop is not None and row >= wanted.stop:
                    break

    def _runs(self, wanted: Cut) -> Iterator[tuple[Segment, int | None, int | None]]:
        """Go through what has to be read: the piece of a file, its first row, and the first row of its file.

        The numbers are None where rows have not been counted: then all is read.
        """
        if self._segments is None:
            for i in range(len(self.files)):
                yield Segment(i, self.start(i), None, 0), None, None
            return
        row = 0
        of_file: dict[int, int] = {}
        run: tuple[Segment, int] | None = None
        for s in self._segments:
            of_file.setdefault(s.file, row)
            if len(_within(wanted, row, s.rows)):
                if run is not None and run[0].file == s.file and run[0].end == s.start:
                    run = (Segment(s.file, run[0].start, s.end, run[0].rows + s.rows), run[1])
                else:
                    if run is not None:
                        yield *run, of_file[run[0].file]
                    run = (s, row)
            row += s.rows
        if run is not None:
            yield *run, of_file[run[0].file]

    # ------------------------------------------------------------- errors

    def malformed(self, piece: Piece, error: MalformedError) -> NoReturn:
        """Raise what is wrong with a row, with the number of its line in the file."""
        file = self.files[piece.file]
        line = self.line_number(piece.file, int(piece.numbers[error.row]))
        raise ValueError(f"malt: load: {file.name}, line {line}: {error}") from None

    def line_number(self, i: int, row: int) -> int:
        """Return the line, from 1, with which a row of a file begins; reads all that is before it."""
        lines = 1 + sum(block.count(b"\n") for block in self.files[i].stream(0, self.start(i)))
        for block in self.rows.whole(self.files[i].stream(self.start(i)), self.files[i].name):
            rows = self.rows.count(block)
            if row < rows:
                return lines + block[: self.rows.spans(block)[row][0]].count(b"\n")
            row -= rows
            lines += block.count(b"\n")
        raise AssertionError("a row that is not there")


def _within(wanted: Cut, row: int, number: int) -> range | np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return which of ``number`` rows from ``row`` on are wanted, counted from 0."""
    if isinstance(wanted, slice):
        step = wanted.step or 1
        start = wanted.start or 0
        begin = start - row if row <= start else -(row - start) % step
        end = number if wanted.stop is None else min(number, wanted.stop - row)
        return range(begin, max(begin, end), step)
    low, high = np.searchsorted(wanted, (row, row + number))
    return wanted[low:high] - row
