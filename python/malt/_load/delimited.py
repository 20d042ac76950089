"""CSV files: as an array of numbers, or as a frame."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import numpy as np

from .._parts import Cut
from .columns import chosen, labelled
from .cuts import in_order
from .decimals import decimals
from .files import File
from .frames import FrameReader
from .lines import checked_encoding, decoded
from .progress import Progress
from .rows import OLD_LINES, Rows
from .team import Team
from .text import MalformedError, Piece, Text

__all__ = ["CSV"]


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
        progress: Progress,
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
                raise ValueError(f"malt: load: {option}={value!r}: one ASCII character is expected")
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
        self._text = Text(files, rows, team, progress, self._after_header)

        def about() -> None:
            for i in range(len(files)):
                if self._names is None:  # files before it are empty
                    self._text.start(i)
            if self._names is None:
                raise ValueError(
                    f"malt: load: {files[0].name} is empty: rows of {delimiter!r}-separated values are expected"
                )
            self._columns, self._label = chosen(files[0].name, self._names, columns, label)

        team.share(about)

    # The first row of a file, read with the file's first use.

    def _after_header(self, file: File, start: int) -> int:
        """Return where the rows of a file begin; its columns must be those of the first one."""
        first = next(self._text.rows.whole(file.stream(start), file.name), b"")
        spans = self._text.rows.spans(first)
        if not spans:
            return start
        begin, end = spans[0]
        try:
            line = first[begin:end].decode(self._encoding)
            fields = self._fields(line)
        except csv.Error as e:
            why = OLD_LINES if "\r" in line.rstrip("\r") else e
            raise ValueError(f"malt: load: {file.name}, line 1: {why}") from None
        except UnicodeDecodeError as e:
            raise ValueError(f"malt: load: {file.name}, line 1: {e}: pass encoding=, perhaps 'latin-1'") from None
        if self._has_header is None:
            self._has_header = not all(_is_number(field) for field in fields)
        names = fields if self._has_header else [str(i) for i in range(len(fields))]
        if self._names is None:
            self._names, self._named_by = names, file.name
        elif names != self._names:
            raise ValueError(
                f"malt: load: the columns of {file.name} are {names}, those of {self._named_by} "
                f"{self._names}: files that are read as one must have the same"
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
        width = len(self._names)
        quick = self._plain_numbers(piece)
        if quick is not None:
            return quick
        try:
            # One row fewer or more would be one with another number of fields.
            found: np.ndarray[Any, Any] = np.loadtxt(
                io.BytesIO(piece.text),
                self._dtype,
                comments=None,
                delimiter=self._delimiter,
                usecols=None if self._columns == list(range(width)) else self._columns,
                ndmin=2,
                encoding=self._encoding,
                quotechar=self._quote,
            )
        except ValueError:
            self._first_bad(piece)
        if found.shape != (len(piece), len(self._columns)):
            self._first_bad(piece)
        return found

    def _plain_numbers(self, piece: Piece) -> np.ndarray[Any, Any] | None:
        """Return the numbers of rows that are nothing but plain decimals; None if they are not."""
        text = piece.text.replace(b"\r\n", b"\n") if b"\r" in piece.text else piece.text
        # Of other types numpy.loadtxt knows what fits.
        if self._dtype.kind != "f" and (self._dtype != np.int64 or b"." in text):
            return None
        delimiter = self._delimiter.encode()
        found = decimals(text, b"\n" + delimiter) if delimiter in b",;\t |:" else None
        if found is None:
            return None
        numbers, before = found
        shape = len(piece), len(self._names or ())
        if len(numbers) != shape[0] * shape[1]:
            return None
        first, others = before.reshape(shape)[:, :1], before.reshape(shape)[:, 1:]
        if (first != 10).any() or (others == 10).any():
            return None
        return numbers.reshape(shape)[:, self._columns].astype(self._dtype, copy=False)

    def _first_bad(self, piece: Piece) -> Any:
        """Raise for the first row that is not numbers, as many as there are columns."""
        assert self._names is not None
        width = len(self._names)
        text = decoded(self._text, piece, self._encoding)
        for i, row in enumerate(
            csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, **self._quoting())
        ):
            if len(row) != width:
                self._text.malformed(
                    piece,
                    MalformedError(
                        i, f"{len(row)} values, but there are {width} columns ({', '.join(self._names[:8])})"
                    ),
                )
            for c in self._columns:
                if not _is_number(row[c], self._dtype):
                    why = (
                        f"column {self._names[c]!r}: {row[c][:40]!r} is no {self._dtype}: choose columns= of numbers, "
                        "or load a frame with frame='pandas' or 'polars'"
                    )
                    self._text.malformed(piece, MalformedError(i, why))
        raise ValueError(
            f"malt: load: {self._text.files[piece.file].name}: numpy.loadtxt does not take all its numbers"
        )

    def _frame(self, cut: Cut) -> Any:
        assert self._reader is not None
        assert self._names is not None
        kept: list[bytes] = []

        def read() -> Any:
            kept.extend(
                piece.text if piece.text.endswith(b"\n") else piece.text + b"\n" for piece in self._text.pieces(cut)
            )

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
