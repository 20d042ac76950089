"""What the calls of a vector are given, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ._arrays import Spec
from ._guide import lines

__all__ = ["check_every", "number", "row_elements"]


def row_elements(arrays: Sequence[Spec]) -> int:
    """Return how many elements a row of a sparse vector of these arrays has."""
    if len(arrays) != 1:
        raise ValueError(
            lines(
                f"sparse= with {len(arrays)} arrays",
                "a sparse vector has one array, whose first axis is that of its rows",
                "Make a vector of each array.",
            )
        )
    shape = arrays[0].shape
    if not shape:
        raise ValueError("malt: sparse= and an array without axes: one axis at least is expected, that of the rows")
    return max(1, math.prod(shape[1:]))


def check_every(every: object) -> None:
    """Raise unless it is a whole number of at least 1, also as a float."""
    sentence = f"malt: every={every!r}: a whole number of at least 1 is expected"
    try:
        if every >= 1 and every == every // 1:  # type: ignore[operator]
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
    raise TypeError(f"malt: weight={weight!r}: a number is expected, such as the number of examples")
