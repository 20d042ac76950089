"""What the calls of a vector are given, checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from .._guide import lines
from .arrays import Spec


def row_elements(arrays: Sequence[Spec], option: str) -> int:
    """Return how many elements a row of a vector of these arrays has, which ``option`` sends by rows."""
    if len(arrays) != 1:
        raise ValueError(
            lines(
                f"{option} with {len(arrays)} arrays",
                "rows are those of one array, whose first axis counts them",
                "Make a vector of each array.",
            )
        )
    shape = arrays[0].shape
    if not shape:
        raise ValueError(lines(f"{option} and an array without axes", "expected at least one axis, for the rows"))
    return max(1, math.prod(shape[1:]))


def check_every(every: object) -> None:
    """Raise unless it is a whole number of at least 1."""
    sentence = lines(f"every={every!r}", "expected a whole number of at least 1")
    try:
        if operator.index(every) >= 1 and not isinstance(every, bool):  # type: ignore[arg-type]
            return
    except TypeError:
        raise TypeError(sentence) from None
    raise ValueError(sentence)


def number(weight: object) -> float:
    """Return a weight as a float; whether it can be one, the library knows."""
    try:
        if not isinstance(weight, str):
            return float(weight)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise TypeError(lines(f"weight={weight!r}", "expected a number, such as the number of examples"))
