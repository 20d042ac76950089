"""Ids of rows: what ``ids=`` and ``wants=`` may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._guide import lines
from ..typing import Sparse
from .arguments import row_elements
from .arrays import Array, Spec
from .folds import Fold


def numbers(what: str, ids: npt.ArrayLike | None) -> Array | None:
    """Return ids as an array of uint64."""
    if ids is None:
        return None
    try:
        given: np.ndarray[Any, Any] = np.asarray(ids)
    except ValueError as e:
        raise ValueError(lines(f"{what}= cannot be read", str(e))) from None
    if isinstance(ids, list | tuple) and all(type(i) is int and 0 <= i < 1 << 64 for i in ids):
        given = np.array(ids, np.uint64)  # numpy makes floats of 1 and 2**63
    if given.ndim != 1:
        raise ValueError(lines(f"{what}= has shape {given.shape}", "expected one axis: an id for each row"))
    expected = "expected integers from 0 to 2**64 - 1"
    if given.size and given.dtype.kind not in "iu":
        has = f"dtype {given.dtype}"
        do = f"Pass {what}=" + ("numpy.flatnonzero(mask)." if given.dtype.kind == "b" else "np.array(…, np.uint64).")
        for i, wrong in enumerate(given.tolist()):
            if not (isinstance(wrong, int | float) and 0 <= wrong < 1 << 64 and wrong == int(wrong)):
                has = f"{wrong!r:.40} at index {i}"
                do = "Number the rows, alike on all ranks. Python's hash() of a text differs on each."
                break
        raise TypeError(lines(f"{what}= has {has}", expected, do))
    if given.size and given.min() < 0:
        raise ValueError(
            lines(
                f"{what}= has {given.min()} at index {given.argmin()}",
                expected,
                "If they are hashes, pass np.array(…, np.int64).view(np.uint64).",
            )
        )
    return given.astype(np.uint64)  # a copy, contiguous


def row_of(specs: list[Spec], sparse: Sparse | None, fold: Fold, ids: Array | None, wants: Array | None) -> int:
    """Return how many elements a row has that is sent by itself; 0 if the whole array is sent."""
    if ids is None and wants is not None:
        raise ValueError(
            lines(
                "wants= without ids=",
                "a vector whose rows have no ids is the same rows on all ranks",
                "Pass ids=[], and data of no rows, if this rank holds none.",
            )
        )
    if ids is None:
        return 0 if sparse is None else row_elements(specs, "sparse=")
    if not isinstance(fold, str):
        raise ValueError(
            lines(
                f"ids= with a function as fold=, {getattr(fold, '__name__', fold)}",
                "each row is combined on the rank where its id belongs",
                "Take fold='sum', 'mean', 'min' or 'max'.",
            )
        )
    row = row_elements(specs, "ids=")
    if len(ids) != specs[0].shape[0]:
        raise ValueError(
            lines(f"{len(ids)} ids for {specs[0].shape[0]} rows", "expected one for each index of the first axis")
        )
    return row
