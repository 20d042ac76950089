"""Shards: the part of the data that is this rank's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar, get_args, overload

import numpy as np

from .._guide import lines
from .._job import world
from .._options import choose, misspelt, spelled, whole
from ..typing import Even, Order
from . import parts as kinds
from .turns import Turns

T = TypeVar("T")
U = TypeVar("U")


@overload
def shard(data: T, /, *, order: Order = "stride", seed: int | None = None, even: Even | None = None) -> T: ...
@overload
def shard(
    data: T, more: U, /, *, order: Order = "stride", seed: int | None = None, even: Even | None = None
) -> tuple[T, U]: ...
@overload
def shard(
    data: Any,
    more: Any,
    third: Any,
    /,
    *others: Any,
    order: Order = "stride",
    seed: int | None = None,
    even: Even | None = None,
) -> tuple[Any, ...]: ...
@spelled
def shard(
    *data: Any, order: str = "stride", seed: int | None = None, even: str | None = None, **unknown: NoReturn
) -> Any:
    """Return this rank's part of the data.

    The parts of the ranks do not overlap, and together they are the whole data; their
    lengths differ by at most one. Ranks do not communicate: each cuts its own copy of the
    data, so all must pass the same data in the same order. A single rank gets everything.

    Parameters
    ----------
    *data : array, sequence, or iterable
        The data, which is cut along its first axis. Several, such as rows and their labels,
        are cut in the same way, and must have the same length.
    order : {"stride", "block", "shuffle"}
        ``stride``: every size-th item, starting at the rank's number.
        ``block``: one contiguous piece. ``shuffle``: every size-th item of a
        random order, which is the same on every rank.
    seed : int, optional
        For ``shuffle``: chooses the random order; 0 by default. Pass the number of the
        epoch to get a new order in each.
    even : {"pad", "drop"}, optional
        Make all parts equally long, which is necessary if ranks average gradients.
        ``pad``: repeat the first items, in the chosen order, at the end.
        ``drop``: leave out the last items, fewer than there are ranks.

    Returns
    -------
    the part, or a tuple of parts if several data were given
        Of the same type if possible, and without a copy if possible:

        ====================================  ==========================================
        numpy array, tensor                   a view; for ``shuffle``, or padded, a copy
        scipy.sparse matrix or array          its rows; as CSR if its format has no rows
        pandas, polars or Arrow data          its rows
        list, tuple                           the same type
        range                                 a range; for ``shuffle``, or padded, a list
        PyTorch Dataset                       a ``torch.utils.data.Subset``
        PyTorch IterableDataset, Sampler      the same, skipping other ranks' items
        any object with a length and items    a sequence that looks up each item when it
                                              is accessed
        iterable, generator                   an iterable that skips other ranks' items
        ====================================  ==========================================

        Skipped items are still produced, on every rank, and must be the same on all.
        If items come one by one, only ``stride`` is possible.

    Raises
    ------
    ValueError
        The lengths differ; there is no such order; a seed without ``shuffle``.
    TypeError
        The data has no order (sets, dicts), no items (a number), or no length
        where one is needed; it is a string, a DataLoader, a sampler that draws from
        the rank's own random numbers, or rows and labels in a tuple.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3.1: each replica
    trains on its own shard.

    Examples
    --------
    >>> malt.shard([5, 6, 7])               # a single rank: everything
    [5, 6, 7]
    >>> rows, labels = malt.shard(np.zeros((10, 3)), np.arange(10), order="block")
    >>> rows.shape, labels.shape
    ((10, 3), (10,))
    """
    if unknown:
        raise misspelt(unknown, shard)
    seed = checked("shard", data, order, seed, even)
    lengths = [kinds.length(i, x) for i, x in enumerate(data)]
    n = common("shard", data, lengths)
    if order != "stride" and None in lengths:
        x = data[lengths.index(None)]
        raise TypeError(
            lines(
                f"order={order!r} of a {type(x).__qualname__}, whose items come one by one",
                do="Use order='stride', or make it a list first.",
            )
        )
    mine = cut(order, seed, n, world.rank(), world.size(), even)
    turns = Turns(world.rank(), world.size(), even)
    parts = tuple(kinds.part(x, n, mine, turns) for x, n in zip(data, lengths, strict=True))
    return parts[0] if len(parts) == 1 else parts


def checked(name: str, data: Sequence[Any], order: str, seed: int | None, even: str | None) -> int | None:
    """Return the seed; raise unless there is data, and the options of ``malt.name`` say how to cut it."""
    choose("order", order, get_args(Order))
    if even is not None:
        choose("even", even, get_args(Even))
    if not data:
        raise TypeError(lines(f"{name}() without data", do=f"Pass the data to cut, such as malt.{name}(rows, labels)."))
    return checked_seed(order, seed)


def common(name: str, data: Sequence[Any], lengths: Sequence[int | None]) -> int | None:
    """Return the one length of all data; None where nothing has a length."""
    if len(data) == 1:
        _refuse_a_pair(name, data[0])
    known = {n for n in lengths if n is not None}
    if len(known) > 1:
        each = ", ".join(
            f"data {i} ({type(x).__qualname__}) has {'no length' if n is None else n}"
            for i, (x, n) in enumerate(zip(data, lengths, strict=True))
        )
        raise ValueError(
            lines(
                f"{name} of data with different lengths", each, "Data that you cut together must have the same length."
            )
        )
    return next(iter(known), None)


def _refuse_a_pair(name: str, data: Any) -> None:
    """Raise if the one thing to be cut is rows and their labels in a tuple or list.

    Cutting that would give one rank the rows and another the labels. Arrays that
    are the items of a tuple are unlikely; in a list they are items if they have one shape.
    """
    if not isinstance(data, list | tuple) or not 2 <= len(data) <= 8:
        return
    shapes = [tuple(getattr(x, "shape", ())) for x in data]
    if not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        return
    if isinstance(data, tuple) or len({len(shape) for shape in shapes}) > 1:
        raise TypeError(
            lines(
                f"{name} of a {type(data).__name__} of {len(data)} arrays, each with {shapes[0][0]} items",
                f"Did you mean malt.{name}({'X, y' if len(data) == 2 else 'X, y, …'})?",
                f"To cut the {type(data).__name__} itself, use the indices of malt.{name}(range({len(data)})).",
            )
        )


# ------------------------------------------------------------- what is whose


def cut(
    order: str, seed: int | None, length: int | None, rank: int, size: int, even: str | None = None
) -> slice | np.ndarray[Any, Any]:
    """Return the indices of a rank's items: a pure function of its arguments."""
    if even is not None and length:
        return _evenly(order, seed, length, rank, size, even)
    if order == "stride" or length is None:
        return slice(rank, None, size)
    if order == "block":
        return slice(rank * length // size, (rank + 1) * length // size)
    return _shuffled(seed, length)[rank::size]


def _shuffled(seed: int | None, length: int) -> np.ndarray[Any, Any]:
    # RandomState rather than default_rng: its streams are frozen, so that ranks with
    # different versions of numpy cut alike.
    shuffled: np.ndarray[Any, Any] = np.random.RandomState(seed).permutation(length)
    return shuffled


def _evenly(order: str, seed: int | None, length: int, rank: int, size: int, even: str) -> slice | np.ndarray[Any, Any]:
    """Return the indices of a rank's items where all ranks get equally many."""
    each = length // size if even == "drop" else -(-length // size)
    own = slice(rank * each, (rank + 1) * each) if order == "block" else slice(rank, each * size, size)
    if order == "shuffle":
        return np.resize(_shuffled(seed, length), each * size)[own]
    mine = range(each * size)[own]
    return own if not mine or mine[-1] < length else np.asarray(mine) % length


def checked_seed(order: str, seed: object) -> int | None:
    """Return the seed of an order; None where that has none."""
    if order == "shuffle":
        most = 2**32 - 1
        kind = "expected a whole number, the same on every rank"
        return 0 if seed is None else whole("seed", seed, 0, most, kind, f"expected 0 to {most}")
    if seed is not None:
        raise ValueError(
            lines(f"seed={seed!r} with order={order!r}", "only order='shuffle' has a seed", "Leave seed out.")
        )
    return None
