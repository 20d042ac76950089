"""What the text formats share: reading this rank's rows.

Where rows have been numbered, a rank reads the segments that hold its own. Rows
that need no numbers (every size-th row) are read in turn, as are compressed files,
which can be read from their first byte only.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ..._guide import below, lines
from ..turns import Cut
from .cuts import within
from .files import BOM, File, see_it_is_the_file
from .memory import Growing
from .numbering import Segment, numbered
from .rows import Rows
from .team import Team


class MalformedError(Exception):
    """A row that cannot be read: its number among the rows of the text, and the reason."""

    def __init__(self, row: int, why: str, do: str = "") -> None:
        super().__init__(below(why, do))
        self.row = row


@dataclass(frozen=True)
class Piece:
    """Rows that have been picked from one block: their lines, and which of the file's rows they are."""

    text: bytes
    file: int
    numbers: range | np.ndarray[tuple[int], np.dtype[np.intp]]

    def __len__(self) -> int:
        return len(self.numbers)


def refuse(name: str, first: bytes) -> None:
    """Raise if a text begins as one in UTF-16, or is not the file itself."""
    see_it_is_the_file(name, first)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(
            lines(
                f"load: {name}, line 1",
                f"the text is UTF-16 (it begins with {first[:2]!r}), which cannot be cut at newlines",
                "Convert the file, such as by iconv -f UTF-16 -t UTF-8.",
            )
        )


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
        header: Callable[[File, int], int] = lambda file, start: start,
    ) -> None:
        self.files = files
        self.rows = rows
        self._header = header
        self._starts: dict[int, int] = {}
        self.team = team
        self._segments: list[Segment] | None = None

    def start(self, i: int) -> int:
        """Return the byte of a file with which its rows begin."""
        if i not in self._starts:
            with self.files[i].plain() as (f, _):
                first = f.read(256)
            refuse(self.files[i].name, first)
            self._starts[i] = self._header(self.files[i], len(BOM) if first.startswith(BOM) else 0)
        return self._starts[i]

    def count(self) -> int:
        """Return the number of rows. Collective: each rank counts those of its share of the bytes."""
        self._segments = numbered(self.files, self.rows, self.start, self.team)
        return sum(s.rows for s in self._segments)

    def pieces(self, cut: Cut, copied: bool = True) -> Iterator[Piece]:
        """Go through the rows of a cut, block by block; shuffled ones in the order of the files.

        Of what is kept of them there is to be room, twice if it is ``copied`` at the end: else a MemoryError is raised.
        """
        growing = Growing(copied)
        wanted = cut if isinstance(cut, slice) else np.sort(cut)
        runs = list(self._runs(wanted))
        self.team.progress.begin("reading", sum((s.end or self.files[s.file].size or 0) - s.start for s, _, _ in runs))
        row = 0  # of all files together
        first = 0  # row of the file that is being read
        file = -1
        for segment, begin, of_file in runs:
            row = row if begin is None else begin
            if segment.file != file:
                file = segment.file
                first = row if of_file is None else of_file
            name = self.files[file].name
            stream = self.files[file].stream(segment.start, segment.end, self.team.progress)
            for block in self.rows.whole(stream, name):
                number = self.rows.count(block)
                mine = within(wanted, row, number)
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
                    growing.grew(len(text))
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
            if len(within(wanted, row, s.rows)):
                if run is not None and run[0].file == s.file and run[0].end == s.start:
                    run = (Segment(s.file, run[0].start, s.end, run[0].rows + s.rows), run[1])
                else:
                    if run is not None:
                        yield *run, of_file[run[0].file]
                    run = (s, row)
            row += s.rows
        if run is not None:
            yield *run, of_file[run[0].file]

    def malformed(self, piece: Piece, error: MalformedError) -> NoReturn:
        """Raise what is wrong with a row, with the number of its line in the file."""
        file = self.files[piece.file]
        line = self.line_number(piece.file, int(piece.numbers[error.row]))
        raise ValueError(lines(f"load: {file.name}, line {line}", str(error))) from None

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
