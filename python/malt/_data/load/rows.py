"""Where the rows of a text begin and end, whatever stands in them.

A row is a line, except that in CSV a newline between quotes does not end one, and
that empty lines and comments are not rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._guide import lines

LONGEST = 256 << 20
"""Bytes of a row above which the file is taken for something else."""


OLD_LINES = (
    "the lines end with \\r alone, as on old computers: expected \\n or \\r\\n",
    "Convert the file, such as by tr '\\r' '\\n'.",
)


@dataclass(frozen=True)
class Rows:
    """How a text is made of rows.

    Parameters
    ----------
    quote : bytes
        The character between two of which a newline is like any other; b"" for none.
    blanks : bool
        Whether empty lines are rows.
    comment : bytes
        What begins a line that is not a row; b"" for nothing.
    """

    quote: bytes = b""
    blanks: bool = False
    comment: bytes = b""

    def _ends(self, block: bytes, quoted: int = 0) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Return where the rows of a block end: past their newlines. It begins with a row, or between quotes."""
        letters = np.frombuffer(block, np.uint8)
        newline = letters == 10
        if self.quote and (quoted or self.quote in block):
            # Between quotes while their number so far is odd; a doubled one changes nothing.
            newline &= np.cumsum(letters == ord(self.quote), dtype=np.int32) % 2 == quoted
        return np.flatnonzero(newline) + 1

    def end(self, block: bytes, quoted: int = 0) -> int:
        """Return where the last whole row of a block ends; 0 if there is none. It begins as in `_ends`."""
        if not self.quote or not (quoted or self.quote in block):
            return block.rfind(b"\n") + 1
        ends = self._ends(block, quoted)
        return int(ends[-1]) if len(ends) else 0

    def first_end(self, block: bytes, quoted: int = 0) -> int:
        """Return where the first row of a block ends; 0 if it does not. It begins as in `_ends`."""
        if not self.quote or not (quoted or self.quote in block):
            return block.find(b"\n") + 1
        ends = self._ends(block, quoted)
        return int(ends[0]) if len(ends) else 0

    def is_plain(self, block: bytes) -> bool:
        """Return whether every line is a row; may say no where it is so."""
        if self.quote and self.quote in block:
            return False
        if self.blanks:
            return True
        first = block[:1]
        return first.strip() != b"" and first != self.comment and not self._odd.search(block)

    @property
    def _odd(self) -> re.Pattern[bytes]:
        return re.compile(rb"\n[ \t\r\n%s]" % re.escape(self.comment))

    def count(self, block: bytes) -> int:
        """Return the number of rows in a block of whole ones."""
        if not block:
            return 0
        if self.is_plain(block):
            return block.count(b"\n") + (not block.endswith(b"\n"))
        return len(self.spans(block))

    def lines(self, block: bytes) -> list[bytes]:
        """Return the rows of a block of whole ones, without their newlines."""
        if self.is_plain(block):
            return block.removesuffix(b"\n").split(b"\n") if block else []
        return [block[a:b] for a, b in self.spans(block)]

    def spans(self, block: bytes) -> list[tuple[int, int]]:
        """Return where each row begins and, without its newline, ends."""
        ends = self._ends(block).tolist()
        if block and (not ends or ends[-1] < len(block)):
            ends.append(len(block) + 1)
        spans = []
        begin = 0
        for end in ends:
            line = block[begin : end - 1]
            text = line.strip()
            if self.blanks or (text and not (self.comment and text.startswith(self.comment))):
                spans.append((begin, end - 1))
            begin = end
        return spans

    def whole(self, blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
        """Cut blocks so that each ends with a row; only the last may end without a newline."""
        rest: list[bytes] = []
        length = quoted = 0  # of the rest: its bytes, and whether it ends between quotes
        for block in blocks:
            if end := self.end(block, quoted):
                yield b"".join([*rest, block[:end]])
                rest, length, quoted = [], 0, 0
            rest.append(block[end:])
            length += len(block) - end
            if self.quote:
                quoted ^= rest[-1].count(self.quote) & 1
            if length > LONGEST:
                quote = f", or a {self.quote.decode()} without its other" if self.quote else ""
                raise ValueError(
                    lines(f"load: {name}: a row of more than {LONGEST >> 20} MiB{quote}", do="Is this another format?")
                )
        if last := b"".join(rest):
            yield last
