"""Rows of a sparse vector: what ``rows=`` may be, and which are named over skipped calls."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from .._guide import lines
from .._options import choose
from ..typing import Sparse
from .arrays import Array

RowsLike: TypeAlias = "npt.ArrayLike | Any"


def representation(sparse: object) -> Sparse | None:
    """Return what ``sparse=`` says: None, "model" or "gradient"."""
    if sparse is False or sparse is None:
        return None
    if isinstance(sparse, bool | np.bool_):
        raise ValueError(
            lines(
                "sparse=True does not say what a missing row means",
                "with 'model' a missing row has not changed; with 'gradient' it is zero",
                "Write one of the two.",
            )
        )
    choose("sparse", sparse, get_args(Sparse))
    return cast("Sparse", sparse)


def index(rows: RowsLike, n: int, called: str) -> Array:
    """Return ``rows=`` of a vector of n rows, which is called so in messages, as an array of int64."""
    scipy = sys.modules.get("scipy.sparse")
    if scipy is not None and scipy.issparse(rows):
        return _columns(rows, n, called)
    try:
        given = np.asarray(rows)
    except ValueError as e:
        raise ValueError(lines("rows= cannot be read", str(e))) from None
    if given.dtype == np.bool_:
        if given.shape != (n,):
            raise ValueError(
                lines(f"rows= is a mask of shape {given.shape}", f"expected ({n},), since {called} has {n} rows")
            )
        return np.flatnonzero(given).astype(np.int64, copy=False)
    if given.size == 0:
        return np.empty(0, np.int64)
    if given.dtype.kind not in "iu":
        raise TypeError(
            lines(
                f"rows= has dtype {given.dtype}: expected indices along the first axis",
                do="Write whole numbers, a mask, or a scipy.sparse matrix whose columns they are.",
            )
        )
    for row in (given.min(), given.max()):
        if not 0 <= row < n:
            have = f"rows 0 to {n - 1}" if n else "no rows"
            raise ValueError(lines(f"rows= names row {row} of {called}", f"it has {have}"))
    return np.ascontiguousarray(given.reshape(-1), np.int64)


def _columns(matrix: Any, n: int, called: str) -> Array:
    """Return the columns of a scipy.sparse matrix, or array, that have entries."""
    if matrix.shape[-1] != n:
        raise ValueError(
            lines(
                f"rows= is a sparse matrix of shape {matrix.shape}",
                f"its columns stand for the rows of {called}: expected {n}",
                "Transpose it?",
            )
        )
    columns = matrix.tocsr().indices if len(matrix.shape) == 2 else matrix.coords[0]
    return np.unique(columns).astype(np.int64)


class Named:
    """The rows that calls of ``sync`` have named since the last that communicated."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._parts: list[Array] = []
        self._count = 0
        self._all = False  # a call named none: it is up to the library to look

    def add(self, rows: Array | None) -> None:
        """Remember the rows of one call."""
        if rows is None:
            self._all, self._parts, self._count = True, [], 0
        elif not self._all:
            self._parts.append(rows)
            self._count += len(rows)
            if self._count > 1 << 20 and len(self._parts) > 1:  # many calls name the same rows
                merged = np.unique(np.concatenate(self._parts))
                self._parts, self._count = [merged], 0

    def take(self) -> Array | None:
        """Return them all; None to look."""
        parts, everything = self._parts, self._all
        self._forget()
        if everything:
            return None
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
