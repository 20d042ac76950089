"""The first errors of a newcomer, word by word.

The guide has each of them: a program that is only to be looked at, and what a rank says of
it. The programs are run here, as two ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Job

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield a name, a program and a message for each case."""
    text = "".join(page.read_text() for page in sorted(GUIDE.glob("*.md")))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        # No other block may come between a program and what it says.
        block, rest = r"((?:(?!^```).)*)^```\n", r"\n(?:(?!^```).)*"
        found = re.findall(rf"^```\{{code-block\}} python\n{block}{rest}^```text\n{block}", section, re.M | re.S)
        for i, (program, message) in enumerate(found, 1):
            yield f"{heading} {i}", program, message


CASES = {name: (program, message) for name, program, message in cases()}


def plain(text: str) -> str:
    """Return text on one line, without the numbers that differ from run to run."""
    text = re.sub(r"\s+", " ", text).replace("script.py", "train.py")
    return re.sub(r"(?<=at clock )\d+|(?<=timed out after )[\d.]+(?= s)", "N", text)


def test_cases_are_found() -> None:
    assert len(CASES) == 8


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    program, message = CASES[name]
    if "TimeoutError" in message:  # soon, but not before both ranks are there
        program = "import malt; malt.barrier(); malt._lib.JOB.set_timeout(1.0); " + program
    with Job(2, program, prelude=False) as job:
        rank0 = job.finish()[0]
    assert plain(message).strip() in plain(rank0.err.text)
