"""Shards: the part of the data that is this rank's."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal, TypeVar, overload

import numpy as np

from . import _world
from ._options import choose

__all__ = ["shard"]

T = TypeVar("T")
Order = Literal["stride", "block", "shuffle"]

ORDERS = ("stride", "block", "shuffle")


@overload
def shard(data: T, /, *, order: Order = "stride", seed: int | None = None) -> T: ...
@overload
def shard(
    data: Any, more: Any, /, *others: Any, order: Order = "stride", seed: int | None = None
) -> tuple[Any, ...]: ...
def shard(*data: Any, order: str = "stride", seed: int | None = None) -> Any:
    """Return this rank's part of the data.

    The parts of all ranks are disjoint and together are everything; their
    lengths differ by at most one. Nothing is communicated: each rank cuts its
    own copy, so all ranks must pass the same data in the same order. Alone, a
    rank gets everything.

    Parameters
    ----------
    *data : array, sequence, or iterable
        What to cut, along the first axis. Several are cut alike, as rows and
        their labels must be, and must have one length.
    order : {"stride", "block", "shuffle"}
        ``stride``: every size-th item, from the rank's own number on.
        ``block``: one contiguous piece. ``shuffle``: every size-th item of a
        random order, which is the same on every rank.
    seed : int, optional
        For ``shuffle``: which random order; 0 by default. Pass the number of
        the pass over the data for a new order in each.

    Returns
    -------
    the part, or a tuple of parts if several data were given
        Of an array a view, or for ``shuffle`` a copy. Of a list, tuple or range
        the same type (for ``shuffle`` of a range, a list). Of anything else that
        has a length and items, such as a data set, a sequence that looks the
        items up when they are asked for. Of an iterable without a length, an
        iterable that skips what belongs to others; ``block`` and ``shuffle``
        need a length.

    Raises
    ------
    ValueError
        The lengths differ; there is no such order; a seed without ``shuffle``.
    TypeError
        The data has no order (sets, dicts), no items (a number), or no length
        where one is needed; or it is a string.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3.1: each replica
    trains on its own shard.

    Examples
    --------
    >>> malt.shard([5, 6, 7])               # alone: everything
    [5, 6, 7]
    >>> rows, labels = malt.shard(np.zeros((10, 3)), np.arange(10), order="block")
    >>> rows.shape, labels.shape
    ((10, 3), (10,))
    """
    choose("order", order, ORDERS)
    if not data:
        raise TypeError("malt: shard() without data: pass what is to be cut, such as malt.shard(rows, labels)")
    if order == "shuffle":
        seed = _checked_seed(seed)
    elif seed is not None:
        raise ValueError(f"malt: seed={seed!r} with order={order!r}: only order='shuffle' has a seed")
    lengths = [_length(i, x) for i, x in enumerate(data)]
    known = {n for n in lengths if n is not None}
    if len(known) > 1:
        raise ValueError(f"malt: shard of data with lengths {lengths}: data that are cut alike must have one length")
    if order != "stride" and None in lengths:
        x = data[lengths.index(None)]
        raise TypeError(
            f"malt: order={order!r} of a {type(x).__qualname__}, which has no length: use order='stride', or make it a "
            "list first"
        )
    cut = _cut(order, seed, known.pop() if known else None, _world.rank(), _world.size())
    parts = tuple(_part(x, n, cut) for x, n in zip(data, lengths, strict=True))
    return parts[0] if len(parts) == 1 else parts


# ------------------------------------------------------------- what is whose


def _cut(order: str, seed: int | None, length: int | None, rank: int, size: int) -> slice | np.ndarray[Any, Any]:
    """Return the indices of a rank's items: a pure function of its arguments."""
    if order == "stride" or length is None:
        return slice(rank, None, size)
    if order == "block":
        return slice(rank * length // size, (rank + 1) * length // size)
    # RandomState rather than default_rng: its streams are frozen, so that ranks with
    # different versions of numpy cut alike.
    shuffled: np.ndarray[Any, Any] = np.random.RandomState(seed).permutation(length)[rank::size]
    return shuffled


def _checked_seed(seed: object) -> int:
    if seed is None:
        return 0
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"malt: seed={seed!r}: a whole number is expected, the same on every rank") from None
    if not 0 <= number < 2**32:
        raise ValueError(f"malt: seed={number}: 0 to {2**32 - 1} is expected")
    return number


# ------------------------------------------------------------ kinds of data


def _length(position: int, x: Any) -> int | None:
    """Return the number of items; None for an iterable that does not know."""
    kind = type(x).__qualname__
    if isinstance(x, str):
        raise TypeError(f"malt: data {position} is the string {x[:40]!r}: pass its lines or items as a list")
    if isinstance(x, Set | Mapping):
        raise TypeError(
            f"malt: data {position} is a {kind}, whose order may differ between ranks: pass sorted(…) of it, or a list"
        )
    shape = getattr(x, "shape", None)  # arrays, tensors, frames, sparse matrices
    if shape is not None:
        if len(shape) == 0:
            raise TypeError(f"malt: data {position} is a {kind} without an axis to cut along: pass a 1-D array or more")
        return int(shape[0])
    if hasattr(x, "__len__") and hasattr(x, "__getitem__"):
        return len(x)
    if isinstance(x, Iterable):
        return None
    raise TypeError(f"malt: data {position} is {x!r}, a {kind}: an array, a sequence or an iterable is expected")


def _part(x: Any, length: int | None, cut: slice | np.ndarray[Any, Any]) -> Any:
    if length is None:
        assert isinstance(cut, slice)
        return itertools.islice(x, cut.start, None, cut.step) if isinstance(x, Iterator) else _Stride(x, cut)
    if isinstance(x, list | tuple | range):
        if isinstance(cut, slice):
            return x[cut]
        items = [x[i] for i in cut.tolist()]
        return tuple(items) if isinstance(x, tuple) else items
    if hasattr(x, "iloc"):  # a frame or series of pandas, whose [] looks at its labels
        return x.iloc[cut]
    if hasattr(x, "shape"):
        return x[cut]
    return _Part(x, range(length)[cut] if isinstance(cut, slice) else cut.tolist())


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
    """Every size-th item of an iterable; iterating again starts anew."""

    def __init__(self, whole: Iterable[Any], cut: slice) -> None:
        self._whole = whole
        self._cut = cut

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._whole), self._cut.start, None, self._cut.step)
