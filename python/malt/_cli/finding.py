"""What ``malt doctor`` has found, line by line."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """One line."""

    level: str
    about: str
    found: str
    remedy: str = ""


def show(findings: Iterable[Finding]) -> int:
    """Print findings as they come, then the verdict, and return the exit code: 1 if there is a problem."""
    worst, width = OK, max(60, shutil.get_terminal_size().columns)
    for level, about, found, remedy in findings:
        for first, text in ((f"{level:8} {about:12} ", found), (f"{'':22}do: ", remedy)):
            form = textwrap.TextWrapper(width, first, " " * 22, break_long_words=False, break_on_hyphens=False)
            for line in form.wrap(text):
                print(line, flush=True)
        worst = PROBLEM if PROBLEM in (level, worst) else WARNING if WARNING in (level, worst) else OK
    print({OK: "no problems found", WARNING: "MALT works; see the warnings", PROBLEM: "see the problems"}[worst])
    return int(worst == PROBLEM)
