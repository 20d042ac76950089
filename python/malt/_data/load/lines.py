"""Lines of text, as strings."""

from __future__ import annotations

import codecs

from ..._guide import lines
from ..turns import Cut
from .cuts import in_order
from .files import File
from .rows import Rows
from .team import Team
from .text import MalformedError, Piece, Text


class Lines:
    """The lines of texts, without their ends."""

    def __init__(self, files: list[File], team: Team, *, encoding: str) -> None:
        self._encoding = checked_encoding(encoding)
        self._text = Text(files, Rows(blanks=True), team)
        self._team = team

    def count(self) -> int:
        return self._text.count()

    def part(self, cut: Cut) -> list[str]:
        lines: list[str] = []

        def read() -> None:
            for piece in self._text.pieces(cut, copied=False):
                text = decoded(self._text, piece, self._encoding)
                some = text.split("\n")
                if len(some) > len(piece):  # the newline of the last one
                    some.pop()
                lines.extend([line[:-1] if line.endswith("\r") else line for line in some] if "\r" in text else some)

        self._team.share(read)
        order = in_order(cut)
        return lines if order is None else [lines[i] for i in order]


def checked_encoding(name: str) -> str:
    """Raise unless the encoding is known and its newline is the byte 10, by which texts are divided."""
    try:
        fits = codecs.lookup(name).name not in ("utf-7", "punycode", "idna") and '\n,"'.encode(name) == b'\n,"'
    except LookupError:
        raise ValueError(
            lines(f"load: encoding={name!r}", "there is no such encoding", "Try 'utf-8' or 'latin-1'.")
        ) from None
    except (TypeError, UnicodeError):
        fits = False
    if not fits:
        raise ValueError(
            lines(
                f"load: encoding={name!r}",
                "MALT splits texts at newlines of one byte, which it does not have",
                "Convert the file to UTF-8.",
            )
        )
    return name


def decoded(text: Text, piece: Piece, encoding: str) -> str:
    """Return the rows of a piece as a string; an error says in which line."""
    try:
        return piece.text.decode(encoding)
    except UnicodeDecodeError as e:
        row = len(text.rows.lines(piece.text[: e.start] + b"?")) - 1
        bad = piece.text[e.start : e.end]
        text.malformed(
            piece, MalformedError(row, f"{bad!r} is not {encoding}", "Pass encoding=, perhaps 'latin-1' or 'cp1252'.")
        )
