"""SVMlight (LIBSVM) files: a label, then index:value pairs; as a sparse matrix and its labels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._guide import lines
from ..._need import need
from ..turns import Cut
from .cuts import in_order
from .files import File
from .rows import OLD_LINES, Rows
from .team import Team
from .text import MalformedError, Text

ROWS = Rows(comment=b"#")

_COLON_TO_BLANK = bytes.maketrans(b":", b" ")
_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)"
_LINE = re.compile(rb"\s*(?:%s)(?:[ \t]+\d+:(?:%s))*\s*" % (_NUMBER, _NUMBER), re.IGNORECASE)
_PAIR = re.compile(rb"\d+:(?:%s)" % _NUMBER, re.IGNORECASE)

LARGEST = 2**53 - 1
"""The largest index: numbers are read as float64, which has no larger whole numbers one by one."""

Parsed = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


class SVMlight:
    """The rows of SVMlight files.

    Parameters
    ----------
    n_features : int, optional
        Number of columns; None: one more than the largest index on any rank.
    zero_based : bool or "auto"
        Whether indices begin with 0; "auto": if there is a 0 on any rank.
    """

    def __init__(
        self,
        files: list[File],
        team: Team,
        *,
        n_features: int | None,
        zero_based: bool | str,
        dtype: np.dtype[Any] | None,
    ) -> None:
        self._sparse: Any = need("scipy.sparse", "load of SVMlight files, which become a csr_matrix,", package="scipy")
        self._text = Text(files, ROWS, team)
        self._team = team
        self._n_features = n_features
        self._zero_based = zero_based
        self._dtype = np.dtype(np.float64) if dtype is None else dtype

    def count(self) -> int:
        return self._text.count()

    def part(self, cut: Cut) -> tuple[Any, np.ndarray[Any, Any]]:
        parsed: list[Parsed] = []

        def read() -> list[int | None]:
            parsed.append(self._read(cut))
            return _ends(parsed[0][2])

        # Of all ranks: a rank's own rows need not have the last feature, or the 0.
        ends = self._team.share(read)
        ((labels, numbers, indices, values),) = parsed
        lows = [a for a, _ in ends if a is not None]
        if self._zero_based == "auto":
            base = 0 if not lows or min(lows) == 0 else 1
        else:
            base = 0 if self._zero_based else 1
            if base and 0 in lows:
                raise ValueError(
                    lines(
                        f"load: {self._text.files[0].name} has a feature 0, but zero_based=False",
                        "expected indices from 1",
                        "Pass zero_based=True.",
                    )
                )
        found = max((b for _, b in ends if b is not None), default=base - 1) + 1 - base
        wide = found if self._n_features is None else self._n_features
        if found > wide:
            raise ValueError(
                lines(
                    f"load: {self._text.files[0].name} has feature {found - 1 + base}, counted from {base}",
                    f"n_features={wide} is too small",
                    f"Pass at least {found}.",
                )
            )
        indices -= base
        x = self._sparse.csr_matrix((values, indices, np.concatenate(([0], np.cumsum(numbers)))), (len(labels), wide))
        if not x.has_sorted_indices:
            x.sort_indices()
        order = in_order(cut)
        return (x, labels) if order is None else (x[order], labels[order])

    def _read(self, cut: Cut) -> Parsed:
        kept: list[Parsed] = []
        for piece in self._text.pieces(cut):
            try:
                labels, numbers, indices, values = parse(piece.text)
            except MalformedError as e:
                self._text.malformed(piece, e)
            small = indices.astype(np.int32) if not len(indices) or indices.max() < 2**31 - 1 else indices
            kept.append((labels, numbers, small, values.astype(self._dtype, copy=False)))
        if not kept:
            return np.zeros(0), np.zeros(0, int), np.zeros(0, np.int32), np.zeros(0, self._dtype)
        labels, numbers, indices, values = (np.concatenate(column) for column in zip(*kept, strict=True))
        return labels, numbers, indices, values


def _ends(indices: np.ndarray[Any, Any]) -> list[int | None]:
    return [int(indices.min()), int(indices.max())] if len(indices) else [None, None]


def parse(text: bytes) -> Parsed:
    r"""Read lines of SVMlight.

    All numbers of the text are read at once; that labels, indices and values come in
    the order that the format wants is then checked for all lines at once. Only if
    something is wrong are the lines looked at one by one.

    Returns
    -------
    labels : float64 array (n,)
    numbers : int array (n,)
        How many pairs a line has.
    indices : int64 array
    values : float64 array

    Raises
    ------
    MalformedError
        With the first line that is not SVMlight.

    Examples
    --------
    >>> parse(b"+1 3:0.5 7:2\n-1 1:4")
    (array([ 1., -1.]), array([2, 1]), array([3, 7, 1]), array([0.5, 2. , 4. ]))
    """
    if b"#" in text:
        text = re.sub(rb"#[^\n]*", b"", text)
    if b"qid:" in text:
        text = re.sub(rb"[ \t]qid:\d+", b"", text)
    if text[:1] in b" \t" or b"\n " in text or b"\n\t" in text:
        text = re.sub(rb"(?m)^[ \t]+", b"", text)
    numbers, before = _numbers(text)
    # What stands before a number says what it is: a newline a label, a colon a value,
    # anything else an index.
    label, value = before == 10, before == 58
    index = ~(label | value)
    # An index, and nothing else, is followed by a value.
    if not label[0] or index[-1] or not np.array_equal(value[1:], index[:-1]):
        raise _first_bad(text)
    found = numbers[index]
    lines = np.flatnonzero(label)
    pairs = np.diff(np.append(lines, len(label))) // 2
    if len(found) and found.max() > LARGEST:
        raise _at_row(text, pairs, found > LARGEST, f"expected an index of at most {LARGEST:,}")
    indices = found.astype(np.int64)
    if len(found) and (found.min() < 0 or not np.array_equal(indices, found)):
        raise _first_bad(text)
    _refuse_twice(text, pairs, indices)
    return numbers[lines], pairs, indices, numbers[value]


def _refuse_twice(text: bytes, pairs: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]) -> None:
    """Raise if a line has an index twice: of what the matrix should hold, the file says two things."""
    rows = np.repeat(np.arange(len(pairs)), pairs)
    if np.all((np.diff(indices) > 0) | (np.diff(rows) > 0)):
        return
    order = np.lexsort((indices, rows))
    twice = np.zeros(len(indices), bool)
    twice[order[1:]] = (np.diff(indices[order]) == 0) & (np.diff(rows[order]) == 0)
    if twice.any():
        raise _at_row(text, pairs, twice, "expected each index once in a line")


def _at_row(text: bytes, pairs: np.ndarray[Any, Any], bad: np.ndarray[Any, Any], want: str) -> MalformedError:
    """Return the error for the first bad pair."""
    at = int(np.argmax(bad))
    row = int(np.searchsorted(np.cumsum(pairs), at, side="right"))
    line, words = [(i, line.split()) for i, line in enumerate(text.split(b"\n")) if line.strip()][row]
    return MalformedError(line, _shown(words[1 + at - int(pairs[:row].sum())]), want)


def _numbers(text: bytes) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the numbers in a text, and the byte before each."""
    try:
        numbers = np.fromstring(text.translate(_COLON_TO_BLANK), sep=" ")
    except (DeprecationWarning, ValueError):  # numpy says so in one way or another, or stops there
        raise _first_bad(text) from None
    letters = np.frombuffer(b"\n" + text, np.uint8)
    blank = (letters <= 32) | (letters == 58)
    before = letters[np.flatnonzero(~blank[1:] & blank[:-1])]
    if len(before) != len(numbers):
        raise _first_bad(text)
    return numbers, before


def _first_bad(text: bytes) -> MalformedError:
    """Return the error for the first line that is not as it should be."""
    for i, line in enumerate(text.split(b"\n")):
        if not _LINE.fullmatch(line):
            words = line.split()
            if b"\r" in line.rstrip(b"\r"):
                return MalformedError(i, *OLD_LINES)
            if not words or not re.fullmatch(_NUMBER, words[0], re.IGNORECASE):
                bad, want = words[0] if words else b"", "a label, a number"
                if b"," in bad:
                    want += " (one per row, not several)"
            else:
                bad = next((word for word in words[1:] if not _PAIR.fullmatch(word)), line)
                want = "index:value, such as 7:0.5"
            return MalformedError(i, _shown(bad), f"expected {want}")
    return MalformedError(0, _shown(text.splitlines()[0]), "this is not a line of SVMlight")


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "backslashreplace") + ("…" if len(text) > 40 else ""))
