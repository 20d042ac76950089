"""Texts at the width of the terminal."""

from __future__ import annotations

import argparse
import os
import re
import textwrap
from collections.abc import Container, Iterator, Sequence

_ENTRY = re.compile(r"( *\S.*?)  +(\S.*)")
"""A line of two columns: a word or a command, and what is to say of it."""


def columns(fd: int, otherwise: int) -> int:
    """Return how wide the terminal at fd is; otherwise where there is none."""
    try:
        return os.get_terminal_size(fd).columns or otherwise
    except OSError:
        return otherwise


def folded(text: str, width: int) -> str:
    r"""Return text whose lines fit; what a line has too much goes on below, indented.

    Examples
    --------
    >>> print(folded("malt run: rank 1 was killed\ntwice", 20))
    malt run: rank 1 was
      killed
    twice
    """
    return "\n".join(part for line in text.split("\n") for part in _fold(line, width))


def _fold(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def filled(text: str, width: int) -> str:
    """Return text whose lines fit: paragraphs, tables of two columns, and commands, which begin with blanks.

    Examples
    --------
    >>> print(filled("  malt run -n 4 train.py    a script", 30))
      malt run -n 4 train.py
          a script
    """
    return "\n\n".join("\n".join(_lines(part.splitlines(), width)) for part in text.rstrip("\n").split("\n\n"))


def _lines(lines: Sequence[str], width: int) -> Iterator[str]:
    flowing: list[str] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None and not line.startswith(" "):
            flowing.append(line)
            continue
        yield from _flow(flowing, width)
        flowing = []
        if len(line) <= width:
            yield line
        elif entry is None:
            yield from _command(line, width)
        elif line.startswith(" "):
            yield from _command(entry[1], width)
            yield from textwrap.wrap(entry[2], width, initial_indent=" " * 6, subsequent_indent=" " * 6)
        else:  # a table without commands
            yield from textwrap.wrap(line, width, subsequent_indent=" " * min(entry.start(2), width // 3))
    yield from _flow(flowing, width)


def _flow(lines: Sequence[str], width: int) -> list[str]:
    return textwrap.wrap(" ".join(lines), width, break_on_hyphens=False)


def _command(line: str, width: int) -> Iterator[str]:
    """Break a command as a shell reads it, where it was not broken already."""
    indent = " " * (len(line) - len(line.lstrip()))
    broken = line.endswith("\\")
    words = textwrap.wrap(
        line.strip().removesuffix("\\").rstrip(),
        width - len(" \\"),
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    for word in words[:-1]:
        yield word + " \\"
    yield words[-1] + " \\" * broken


def aligned(rows: Sequence[Sequence[str]], left: Container[int]) -> list[str]:
    """Return a line for each row, with columns of one width: those in `left` begin at the same place, others end there.

    Examples
    --------
    >>> aligned([("rank", "state"), ("0", "waiting")], left={1})
    ['rank  state', '   0  waiting']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(wide) if i in left else cell.rjust(wide)
            for i, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def counted(count: int, noun: str) -> str:
    """Return so many of what a noun names.

    Examples
    --------
    >>> counted(1, "rank"), counted(3, "rank")
    ('1 rank', '3 ranks')
    """
    return f"{count} {noun}{'s'[: count != 1]}"


def span(seconds: float) -> str:
    """Return a duration with its unit."""
    if seconds >= 600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"


class Formatter(argparse.HelpFormatter):
    """Wraps description, examples and usage, and names the value of an option once."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width)

    def _format_usage(self, usage: str | None, *rest: object) -> str:
        if usage is None:
            return super()._format_usage(usage, *rest)  # type: ignore[arg-type]
        text = f"usage: {usage % {'prog': self._prog}}"
        return "\n".join(textwrap.wrap(text, self._width, subsequent_indent=" " * 7, break_on_hyphens=False)) + "\n\n"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def named(size: float) -> str:
    """Return a number of bytes with its unit."""
    for name, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {name}"
    return f"{size} B"
