"""CSV files: as an array of numbers, or as a frame."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import _lib
from ..._guide import lines
from ..turns import Cut
from .columns import chosen, labelled
from .cuts import in_order
from .files import File
from .frames import FrameReader
from .lines import checked_encoding, decoded
from .rows import OLD_LINES, Rows
from .team import Team
from .text import MalformedError, Piece, Text


class CSV:
    """The rows of CSV files.

    Parameters
    ----------
    columns, label : see `malt.load`
    frame : {"pandas", "polars"}, optional
        None: an array.
    header : bool, optional
        Whether the first row of each file names the columns; None: if any of it is not a number.
    delimiter : str, optional
        None: a tab for ``.tsv``, otherwise a comma.
    quotechar : str or None
    """

    def __init__(
        self,
        files: list[File],
        team: Team,
        *,
        columns: list[str | int] | None,
        label: str | int | None,
        frame: str | None,
        dtype: np.dtype[Any] | None,
        header: bool | None,
        delimiter: str | None,
        quotechar: str | None,
        encoding: str,
    ) -> None:
        if delimiter is None:
            delimiter = "\t" if re.search(r"\.tsv\b", files[0].base, re.IGNORECASE) else ","
        for option, value in (("delimiter", delimiter), ("quotechar", '"' if quotechar is None else quotechar)):
            if len(value.encode()) != 1:
                raise ValueError(lines(f"load: {option}={value!r}", "expected one ASCII character"))
        self._delimiter = delimiter
        self._quote = quotechar
        self._encoding = checked_encoding(encoding)
        self._has_header = header
        self._dtype = np.dtype(np.float64) if dtype is None else dtype
        self._reader = None if frame is None else FrameReader(frame)
        self._names: list[str] | None = None
        self._named_by = ""  # the first file that has rows
        self._team = team
        rows = Rows(quote=b"" if quotechar is None else quotechar.encode())
        self._text = Text(files, rows, team, self._after_header)

        def about() -> None:
            for i in range(len(files)):
                if self._names is None:  # files before it are empty
                    self._text.start(i)
            if self._names is None:
                raise ValueError(
                    lines(f"load: {files[0].name} is empty", f"expected rows of {delimiter!r}-separated values")
                )
            named = self._names if frame is not None and columns is None else columns  # a frame's are found by name
            self._columns, self._label = chosen(files[0].name, self._names, named, label)

        team.share(about)

    # The first row of a file, read with the file's first use.

    def _after_header(self, file: File, start: int) -> int:
        """Return where the rows of a file begin; its columns must be those of the first one."""
        blocks = self._text.rows.whole(file.stream(start), file.name)
        first = next(blocks, b"")
        spans = self._text.rows.spans(first)
        if not spans:
            return start
        begin, end = spans[0]
        try:
            line = first[begin:end].decode(self._encoding)
            fields = self._fields(line)
        except csv.Error as e:
            why = OLD_LINES if "\r" in line.rstrip("\r") else (str(e),)
            raise ValueError(lines(f"load: {file.name}, line 1", *why)) from None
        except UnicodeDecodeError as e:
            raise ValueError(
                lines(f"load: {file.name}, line 1", str(e), "Pass encoding=, perhaps 'latin-1'.")
            ) from None
        if self._has_header is None:
            numbers = [_is_number(field) for field in fields]
            if any(numbers) and not all(numbers):
                what, other = fields[numbers.index(True)], fields[numbers.index(False)]
                raise ValueError(
                    lines(
                        f"load: {file.name}, line 1: {what[:40]!r} is a number, {other[:40]!r} is not",
                        "the line may be the names of the columns, or the first row",
                        "Say which, with header=True or header=False.",
                    )
                )
            self._has_header = not numbers[0]
            alone = len(fields) == len(spans) == 1 and next(blocks, None) is None
            if self._has_header and alone and self._team.first:
                _lib.warn(
                    lines(
                        f"load: {file.name} has no rows",
                        f"its only line, {line[:40]!r}, was read as the names of the columns",
                        "If that is right, pass header=True. If not, check the file.",
                    )
                )
        names = fields if self._has_header else [str(i) for i in range(len(fields))]
        if self._names is None:
            self._names, self._named_by = names, file.name
        elif names != self._names:
            raise ValueError(
                lines(
                    f"load: the columns of {file.name} are {names}",
                    f"those of {self._named_by} are {self._names}",
                    "Load only files with the same columns together.",
                )
            )
        return start + end + 1 if self._has_header else start

    def _fields(self, line: str) -> list[str]:
        return next(csv.reader([line.rstrip("\r")], delimiter=self._delimiter, **self._quoting()))

    def _quoting(self) -> dict[str, Any]:
        return {"quoting": csv.QUOTE_NONE} if self._quote is None else {"quotechar": self._quote}

    # The rows.

    def count(self) -> int:
        return self._text.count()

    def part(self, cut: Cut) -> Any:
        whole = self._array(cut) if self._reader is None else self._frame(cut)
        order = in_order(cut)
        if order is not None:
            whole = whole[order] if self._reader is None else self._reader.take(whole, order)
        names = [self._names[i] for i in self._columns]  # type: ignore[index]
        return labelled(whole, names, None if self._label is None else names.index(self._label))

    def _array(self, cut: Cut) -> np.ndarray[Any, Any]:
        parts = [np.zeros((0, len(self._columns)), self._dtype)]

        def read() -> None:
            parts.extend(self._numbers(piece) for piece in self._text.pieces(cut))

        self._team.share(read)
        return np.concatenate(parts)

    def _numbers(self, piece: Piece) -> np.ndarray[Any, Any]:
        assert self._names is not None
        everything = self._columns == list(range(len(self._names)))
        if not everything:  # loadtxt ignores what follows the last of them
            self._see_widths(piece)
        try:
            # One row fewer or more would be one with another number of fields.
            found: np.ndarray[Any, Any] = np.loadtxt(
                io.BytesIO(piece.text),
                self._dtype,
                comments=None,
                delimiter=self._delimiter,
                usecols=None if everything else self._columns,
                ndmin=2,
                encoding=self._encoding,
                quotechar=self._quote,
            )
        except ValueError:
            self._first_bad(piece)
        if found.shape != (len(piece), len(self._columns)):
            self._first_bad(piece)
        return found

    def _see_widths(self, piece: Piece, padded: bool = False) -> None:
        """Raise for the first row with another number of fields than there are columns."""
        for _ in self._fields_of(piece, padded):
            pass

    def _fields_of(self, piece: Piece, padded: bool = False) -> Iterator[list[str]]:
        """Yield the fields of each row; raise as `_see_widths`. Of ``padded`` rows the last fields may be missing."""
        assert self._names is not None
        text = io.StringIO(decoded(self._text, piece, self._encoding), newline="")
        for i, row in enumerate(csv.reader(text, delimiter=self._delimiter, **self._quoting())):
            if len(row) > len(self._names) or (len(row) < len(self._names) and not padded):
                columns = f"{len(self._names)} column{'s' * (len(self._names) != 1)} ({', '.join(self._names[:8])})"
                why = f"{len(row)} value{'s' if len(row) != 1 else ''}, expected {columns}"
                self._text.malformed(piece, MalformedError(i, why, self._other_delimiter(row)))
            yield row

    def _other_delimiter(self, row: list[str]) -> str:
        """Say what to pass if the file seems to have another delimiter."""
        assert self._names is not None
        found = [c for c in ";\t| " if c in self._names[0].strip() + row[0].strip()] if len(self._names) == 1 else []
        return f"Pass delimiter={found[0]!r}." if found else ""

    def _first_bad(self, piece: Piece) -> Any:
        """Raise for the first row that is not numbers, as many as there are columns."""
        assert self._names is not None
        for i, row in enumerate(self._fields_of(piece)):
            for c in self._columns:
                if not _is_number(row[c], self._dtype):
                    why = f"column {self._names[c]!r}: {row[c][:40]!r} is not {self._dtype}"
                    do = "Choose columns= of numbers, or load a frame with frame='pandas' or 'polars'."
                    self._text.malformed(piece, MalformedError(i, why, self._other_delimiter(row) or do))
        raise ValueError(
            lines(f"load: {self._text.files[piece.file].name}", "numpy.loadtxt cannot read all its numbers")
        )

    def _frame(self, cut: Cut) -> Any:
        assert self._reader is not None
        assert self._names is not None
        kept: list[bytes] = []

        def read() -> None:
            for piece in self._text.pieces(cut):
                self._see_widths(piece, padded=True)  # pandas drops what is too much
                kept.append(piece.text if piece.text.endswith(b"\n") else piece.text + b"\n")

        self._team.share(read)
        head = io.StringIO()
        csv.writer(head, delimiter=self._delimiter, lineterminator="\n").writerow(self._names)
        text = head.getvalue().encode(self._encoding) + b"".join(kept)
        options = (text, self._delimiter, self._quote, self._encoding, [self._names[i] for i in self._columns])
        return self._reader.read_csv(self._team, *options)


def _is_number(field: str, dtype: np.dtype[Any] | type = np.float64) -> bool:
    try:
        np.array([field.strip()]).astype(dtype)
    except (ValueError, OverflowError):
        return False
    return True
