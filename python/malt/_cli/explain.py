"""``malt explain``: prints a section of the guide, which is in the package."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import malt
from malt._cli.options import Parser, UsageError, nearest
from malt._cli.wrap import columns

DESCRIPTION = """\
Prints the section of the guide on a topic, such as one that an error names. Without a
topic, lists the topics."""

EXAMPLES = """\
  malt explain hangs
  malt explain
"""


def topics() -> dict[str, str]:
    """Return the texts by topic."""
    found: dict[str, str] = json.loads(Path(malt.__file__).with_name("_topics.json").read_text(encoding="utf-8"))
    return {name: found.get(text, text) for name, text in found.items()}


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("explain", "malt explain [TOPIC]", DESCRIPTION, EXAMPLES)
    made.add_argument("topic", nargs="?", help="a word such as hangs, slow, mismatch, firewall")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    topic = parser().parse(arguments).topic
    texts = topics()
    if topic is None:
        width = max(map(len, texts))
        for name in sorted(texts):
            title = f"{name:{width}}  {texts[name].partition(chr(10))[0]}"
            print("\n".join(textwrap.wrap(title, columns(1, 120), subsequent_indent=" " * (width + 2))))
        return 0
    if topic not in texts:
        raise UsageError("malt explain", f"{topic!r} is not a topic", nearest(topic, texts))
    print("\n".join(fitted(texts[topic], min(shutil.get_terminal_size().columns, 100))).rstrip())
    return 0


def fitted(text: str, width: int) -> Iterator[str]:
    r"""Yield the lines of a text in Markdown; prose, lists and tables are as wide as the terminal.

    Examples
    --------
    >>> print(*fitted("Run it alone\nfirst.\n\n    malt run -n 2 train.py\n", 40), sep="\n")
    Run it alone first.
    <BLANKLINE>
        malt run -n 2 train.py
    """
    flowing: list[str] = []
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        yield from _table(rows, width)
        rows = []
        code = line.startswith(("    ", "=", "-")) or not line
        if flowing and (code or line.startswith("* ")):
            indent = "  " if flowing[0].startswith("* ") else ""
            flow = " ".join(map(str.strip, flowing))
            title = line.startswith(("=", "-"))
            yield from [flow] if title else textwrap.wrap(flow, width, subsequent_indent=indent, break_on_hyphens=False)
            flowing = []
        if code:
            yield line
        else:
            flowing.append(line)


def _table(rows: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of a table, whose columns are as wide as their cells where that fits."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in rows]
    if not cells:
        return
    widths = [max(map(len, column)) for column in zip(cells[0], *cells[2:], strict=True)]
    left = width - 2 * (len(widths) - 1)
    for k, i in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        widths[i] = min(widths[i], left // (len(widths) - k))
        left -= widths[i]
    cells[1] = ["-" * w for w in widths]
    for row in cells:
        if left == 0 and row not in cells[:3]:
            yield ""  # between rows of several lines
        parts = [textwrap.wrap(cell, w, break_on_hyphens=False) for cell, w in zip(row, widths, strict=True)]
        for line in zip_longest(*parts, fillvalue=""):
            yield "  ".join(f"{part:{w}}" for part, w in zip(line, widths, strict=True)).rstrip()
