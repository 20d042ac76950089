"""What a program finds for a claim."""

from __future__ import annotations

import csv
import json
import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

HERE = Path(__file__).parent
KEPT = HERE / "shown.json"

Verdict = Literal["holds", "in part", "does not hold", "not shown"]


class Claim(NamedTuple):
    """A row of ``claims.csv``.

    `lacks` is what there has to be before a program can show it, `why` the reason where it does not hold, or in part.
    """

    id: str
    claim: str
    where: str
    lacks: str
    why: str


@dataclass(frozen=True)
class Shown:
    """A figure of ours beside that of the paper."""

    paper: str
    ours: str
    how: str
    verdict: Verdict


Program = Callable[[], Shown]


class NotShownError(Exception):
    """Something that the program needs is not there."""


def among(turns: Sequence[float], middle: float | None = None, form: str = ".1f") -> str:
    """Return the median, or what is given as middle, with the least and the most of all turns."""
    if min(turns) == math.inf:
        return "never"
    middle = statistics.median(turns) if middle is None else middle
    return f"{middle:{form}} ({min(turns):{form}} to {max(turns):{form}})".replace("inf", "never")


def data(name: str) -> Path:
    """Return a file or folder of MALT_DATA."""
    path = Path(os.environ.get("MALT_DATA", ".")) / name
    if not path.exists():
        raise NotShownError(f"{name} is not in the folder that MALT_DATA names")
    return path


def claims() -> dict[str, Claim]:
    """Return all claims by their id."""
    with (HERE / "claims.csv").open(newline="", encoding="utf-8") as file:
        return {row["id"]: Claim(**row) for row in csv.DictReader(file)}


def kept() -> dict[str, Shown]:
    """Return what has been kept, by id."""
    return {id: Shown(**found) for id, found in json.loads(KEPT.read_text("utf-8")).items()}


def keep(id: str, shown: Shown) -> None:
    """Write a figure where the documentation finds it."""
    every = {**kept(), id: shown}
    text = {other: asdict(every[other]) for other in claims() if other in every}
    KEPT.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", "utf-8")
