"""`malt.deal`: a rank's items, and what ranks that die leave of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar, overload

from .._guide import lines
from .._job import world
from .._options import misspelt, spelled, whole
from ..typing import Even, Order
from . import parts as kinds
from .dealing import Deal
from .shard import checked, common
from .turns import Cut, Turns

T = TypeVar("T")
U = TypeVar("U")


@overload
def deal(
    data: Iterable[T],
    /,
    *,
    epochs: int = 1,
    order: Order = "stride",
    seed: int | None = None,
    even: Even | None = None,
) -> Deal[T]: ...
@overload
def deal(
    data: Iterable[T],
    more: Iterable[U],
    /,
    *,
    epochs: int = 1,
    order: Order = "stride",
    seed: int | None = None,
    even: Even | None = None,
) -> Deal[tuple[T, U]]: ...
@overload
def deal(
    *data: Any, epochs: int = 1, order: Order = "stride", seed: int | None = None, even: Even | None = None
) -> Deal[Any]: ...
@spelled
def deal(
    *data: Any,
    epochs: int = 1,
    order: Order = "stride",
    seed: int | None = None,
    even: Even | None = None,
    **unknown: NoReturn,
) -> Deal[Any]:
    """Return this rank's items to loop over, and its share of the items that dead ranks leave.

    While all ranks live, a rank gets the items of `shard`, in the same order. In a job that
    continues when ranks die (``malt run --on-death continue``), the other ranks get the rest
    of a dead rank's items in turn, before the pass ends. Items that the dead rank had taken
    since its last sync (where no rank of its machine lives, since the last one that had
    reached another machine) belong to this rest, because no other rank's model contains
    them. These items come twice, and no others do.

    Making a deal is collective, and so is the end of each pass: a rank that gets there first
    waits for the others. Meanwhile their `Vector.sync` does not wait for it. If a rank dies,
    each rank that waits takes its share of the rest.

    Parameters
    ----------
    *data : array or sequence
        As for `shard`, but with a length. The loop gets the items of one, as ``for`` does;
        of several, such as rows and their labels, tuples of items, as `zip` gives. The
        items of a pandas frame are its rows; of other tables, tables of one row.
    epochs : int
        How many passes a loop makes over the data.
    order : {"stride", "block", "shuffle"}
        As for `shard`. ``shuffle`` takes a new order in each pass.
    seed : int, optional
        For ``shuffle``: the pass with number ``epoch`` has the order of
        ``malt.shard(…, order="shuffle", seed=seed + epoch)``; 0 by default.
    even : {"pad", "drop"}, optional
        As for `shard`: give all ranks the same number of items. What a dead rank leaves
        is padded, never dropped.

    Returns
    -------
    Deal
        To loop over, with ``epoch``, ``position`` and a length.

    Raises
    ------
    ValueError, TypeError
        As for `shard`; or the data has no length.
    MismatchError
        The ranks deal different data, or with different options.
    TimeoutError, PeerError, StateError
        As for `barrier`, also at the end of a pass.

    Notes
    -----
    *Syncs.* `Vector.sync`, `Vector.gather` after a scatter, and `Vector.allreduce`, of any
    vector, count once they have returned. With ``every=`` only calls that exchange count. In
    ``bsp`` and ``notify-ack`` a call counts if no rank was missing, because a rank that waits at the
    end of its pass does not get that update. An item counts as taken when the loop gets it.
    So sync after the work on an item, and sync all vectors of a model together. If a rank
    never syncs, all items that it had taken in the pass are dealt again.

    *Passes.* Items that a rank has not synced at the end of a pass are dealt in a later pass if the
    rank dies there. After the last pass no items are dealt, so end with ``v.allreduce()``. In
    ``async``, call ``v.gather()`` before it: the last update of a dead rank may still be unread.

    *Gradients* need the same number of steps on each rank: pass ``even="pad"``.

    *Leaving early.* If a rank leaves the loop by ``break``, all ranks must leave in the same
    pass. The next loop over the deal begins with the next pass.

    Examples
    --------
    >>> x, y = np.arange(6.0), np.ones(6)
    >>> deal = malt.deal(x, y, epochs=2)
    >>> len(deal)                               # a single rank: everything
    12
    >>> for a, b in deal:
    ...     if deal.position == 6:
    ...         print(deal.epoch, a, b)
    0 5.0 1.0
    1 5.0 1.0
    """
    if unknown:
        raise misspelt(unknown, deal)
    seed = checked("deal", data, order, seed, even)
    epochs = checked_epochs(epochs)
    lengths = [kinds.length(i, x) for i, x in enumerate(data)]
    n = numbered("deal", data, lengths)
    return Deal(Items(data, n, even), n, epochs, order, seed, even)


class Items:
    """One item at a time of some data."""

    batch = 1

    def __init__(self, data: Sequence[Any], n: int, even: str | None) -> None:
        self._data = data
        self._n = n
        self._even = even

    def take(self, own: Cut) -> Iterator[Any]:
        turns = Turns(world.rank(), world.size(), self._even)
        each = [kinds.items(kinds.part(x, self._n, own, turns)) for x in self._data]
        return zip(*each, strict=False) if len(each) > 1 else each[0]


def checked_epochs(epochs: object) -> int:
    """Return the number of passes."""
    most = 2**32 - 1
    return whole("epochs", epochs, 0, most, "expected a whole number of passes", f"expected 0 to {most}")


def numbered(name: str, data: Sequence[Any], lengths: Sequence[int | None]) -> int:
    """Return the length of all data; raise where some of it can only be gone through in turn."""
    n = common(name, data, lengths)
    if n is None or None in lengths:
        kind = type(data[lengths.index(None)]).__qualname__
        raise TypeError(
            lines(
                f"{name} of a {kind}, whose items come one by one",
                "the items that a dead rank leaves have to be found again by their numbers",
                "Make it a list first, or use malt.shard.",
            )
        )
    return n
