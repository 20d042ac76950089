"""What `malt.shard` can cut: how long it is, and how a part of it is taken.

None of the packages whose kinds are known here is imported: who passes one of
theirs has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from os import PathLike
from typing import Any

import numpy as np

from .._guide import lines
from .turns import Cut, Turns, skip

ROW_SLICED = ("csr", "csc", "lil")
"""The sparse formats that can be cut by rows themselves."""


def length(position: int, x: Any) -> int | None:
    """Return the number of items; None if they can only be gone through in turn."""
    kind = type(x).__qualname__
    if isinstance(x, str | PathLike):
        raise TypeError(
            lines(
                f"data {position} is the {'path' if isinstance(x, PathLike) else 'string'} {str(x)[:40]!r}",
                "malt.load reads a rank's part of a file",
                "Pass the lines or items of a text as a list.",
            )
        )
    if isinstance(x, Set | Mapping) and not hasattr(x, "tocsr"):  # scipy's dok_matrix is a dict
        raise TypeError(
            lines(
                f"data {position} is a {kind}", "its order may differ between ranks", "Pass sorted(…) of it, or a list."
            )
        )
    if _is_torch(x):
        from . import parts_torch

        return parts_torch.length(position, x)
    shape = getattr(x, "shape", None)  # arrays, tensors, frames, sparse matrices
    if shape is not None:
        if len(shape) == 0:
            raise TypeError(
                lines(f"data {position} is a {kind} without an axis to cut along", do="Pass a 1-D array or more.")
            )
        return int(shape[0])
    if hasattr(x, "__len__") and hasattr(x, "__getitem__"):
        return len(x)
    if isinstance(x, Iterable):
        return None
    hint = ""
    if hasattr(x, "collect"):
        hint = "Call collect() on it first."
    elif callable(x):
        hint = "Pass what it returns."
    raise TypeError(lines(f"data {position} is {x!r}, a {kind}", "expected an array, a sequence or an iterable", hint))


def part(x: Any, n: int | None, cut: Cut, turns: Turns) -> Any:
    """Return those of the items of ``x``, which has ``n``; without a number, by turns."""
    if _is_torch(x):
        from . import parts_torch

        return parts_torch.part(x, n, cut, turns)
    if n is None:
        return skip(x, turns) if isinstance(x, Iterator) else _Stride(x, turns)
    if isinstance(x, list | tuple | range):
        if isinstance(cut, slice):
            return x[cut]
        items = [x[i] for i in cut.tolist()]
        return tuple(items) if isinstance(x, tuple) else items
    if hasattr(x, "iloc"):  # a frame or series of pandas, whose [] looks at its labels
        return x.iloc[cut]
    if hasattr(x, "combine_chunks"):  # a table or column of Arrow
        return x.take(np.arange(n)[cut])
    if hasattr(x, "shape"):
        if hasattr(x, "tocsr") and x.format not in ROW_SLICED:
            x = x.tocsr()
        return x[cut]
    return _Part(x, range(n)[cut] if isinstance(cut, slice) else cut.tolist())


def items(x: Any) -> Iterator[Any]:
    """Go through the items of a part: of a table, its rows."""
    if len(getattr(x, "shape", ())) == 2 and hasattr(x, "iloc"):
        return map(x.iloc.__getitem__, range(len(x)))
    if len(getattr(x, "shape", ())) == 2 and hasattr(x, "slice"):  # polars and Arrow: tables of one row
        return (x.slice(i, 1) for i in range(len(x)))
    if hasattr(x, "__iter__"):
        return iter(x)
    return map(x.__getitem__, range(len(x)))


def _is_torch(x: Any) -> bool:
    """Return whether this is one of PyTorch's ways to hold examples; a tensor is like any array."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(x, data.Dataset | data.Sampler | data.DataLoader)


class _Part(Sequence[Any]):
    """Some items of something with a length, looked up when they are asked for."""

    def __init__(self, whole: Any, indices: Sequence[int]) -> None:
        self._whole = whole
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return _Part(self._whole, self._indices[i])
        return self._whole[self._indices[i]]

    def __repr__(self) -> str:
        return f"<{len(self)} of the {len(self._whole)} items of a {type(self._whole).__qualname__}>"


class _Stride(Iterable[Any]):
    """Every size-th item of an iterable; iterating again starts from its beginning."""

    def __init__(self, whole: Iterable[Any], turns: Turns) -> None:
        self._whole = whole
        self._turns = turns

    def __iter__(self) -> Iterator[Any]:
        return skip(self._whole, self._turns)
