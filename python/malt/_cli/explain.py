"""``malt explain``: prints a section of the guide, which is in the package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import malt
from malt._cli.options import Parser, UsageError, nearest

DESCRIPTION = """\
Prints what the guide says about a topic, such as one that an error names; without a
topic, the topics there are."""

EXAMPLES = """\
  malt explain hangs
  malt explain
"""


def topics() -> dict[str, str]:
    """Return the texts by topic."""
    found: dict[str, str] = json.loads(Path(malt.__file__).with_name("_topics.json").read_text(encoding="utf-8"))
    return found


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("explain", "malt explain [TOPIC]", DESCRIPTION, EXAMPLES)
    made.add_argument("topic", nargs="?", help="a word such as hangs, mismatch, firewall")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    topic = parser().parse(arguments).topic
    texts = topics()
    if topic is None:
        width = max(map(len, texts))
        for name in sorted(texts):
            print(f"{name:{width}}  {texts[name].partition(chr(10))[0]}")
        return 0
    if topic not in texts:
        raise UsageError("malt explain", f"{topic!r} is not a topic: {nearest(topic, texts)}")
    print(texts[topic], end="")
    return 0
