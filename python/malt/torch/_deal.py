"""``malt.torch.deal``: the batches of a rank, and of what ranks that die leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from .._data import parts as kinds
from .._data.deal import checked_epochs, numbered
from .._data.dealing import Deal
from .._data.shard import checked
from .._data.turns import Cut
from .._guide import lines
from .._need import need
from .._options import misspelt, options_of, whole
from ..typing import Even, Order

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Dataset, Sampler
else:
    data = need("torch.utils.data", "malt.torch")
    DataLoader, Dataset, Sampler = data.DataLoader, data.Dataset, data.Sampler

TAKEN = {
    "shuffle": "Pass order='shuffle'.",
    "sampler": "Pass order= and seed=.",
    "batch_sampler": "Pass batch_size=, order= and seed=.",
    "drop_last": "Pass even='drop', which gives all ranks the same number of items.",
}
"""What a DataLoader is told by the deal itself, and what to write instead."""


def deal(
    dataset: Dataset[Any],
    *,
    batch_size: int = 1,
    epochs: int = 1,
    order: Order = "stride",
    seed: int | None = None,
    even: Even | None = None,
    **options: Any,
) -> Deal[Any]:
    """Return this rank's batches to loop over, and its share of the items that dead ranks leave.

    A DataLoader makes the batches of the items that `malt.deal` would hand out. In a job that
    continues when ranks die, each item of a pass is in a batch of a rank that lives on. Batches
    count when the loop gets them, not when workers fetch them. Making a deal is collective, and
    so is the end of each pass.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        With a length; the same on all ranks.
    batch_size : int
        The number of items in a batch of one rank; in the last of a pass there may be fewer.
    epochs, order, seed, even
        As for `malt.deal`. For gradients pass ``even="pad"``, which gives all ranks the same
        number of batches.
    **options
        Further options of the DataLoader, such as ``num_workers``, ``collate_fn`` and
        ``pin_memory``. With ``num_workers``, pass ``persistent_workers=True`` to keep the workers
        from pass to pass.

    Returns
    -------
    malt.Deal
        To loop over. ``position`` and the length are in batches.

    Raises
    ------
    ValueError, TypeError
        As for `malt.deal`; an option that the deal decides, such as ``shuffle``; or what a DataLoader refuses.
    MismatchError, TimeoutError, PeerError, StateError
        As for `malt.deal`.

    See Also
    --------
    malt.deal : What is dealt again, and what counts as a sync.

    Examples
    --------
    >>> import torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> for (batch,) in malt.torch.deal(data, batch_size=2, epochs=2):
    ...     print(batch.tolist())
    [0, 1]
    [2, 3]
    [4]
    [0, 1]
    [2, 3]
    [4]
    """
    for name, instead in TAKEN.items():
        if name in options:
            raise TypeError(lines(f"deal() with {name}=", "a deal itself says which items are whose", instead))
    known = options_of(DataLoader.__init__)
    if unknown := [name for name in options if name not in known]:
        raise misspelt(unknown, deal, DataLoader.__init__)
    expected = "expected a number of items"
    batch_size = whole("batch_size", batch_size, 1, 2**31, expected, f"{expected}, 1 or more")
    epochs = checked_epochs(epochs)
    if isinstance(dataset, list | tuple) and dataset and all(getattr(x, "shape", ()) for x in dataset):
        raise TypeError(
            lines(
                f"deal of a {type(dataset).__name__} of {len(dataset)} tensors",
                "expected a data set, whose items are rows",
                "Pass torch.utils.data.TensorDataset(X, y).",
            )
        )
    seed = checked("deal", [dataset], order, seed, even)
    n = numbered("deal", [dataset], [kinds.length(0, dataset)])
    return Deal(Batches(dataset, n, batch_size, options), n, epochs, order, seed, even)


class _Turn(Sampler[int]):
    """The numbers of the items of the present hand."""

    numbers: list[int] | range = range(0)

    def __init__(self) -> None:
        pass

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


class Batches:
    """The batches of one DataLoader, which goes through other items each time."""

    def __init__(self, dataset: Dataset[Any], n: int, batch_size: int, options: dict[str, Any]) -> None:
        self.batch = batch_size
        self._n = n
        self._turn = _Turn()
        self._loader = DataLoader(dataset, batch_size=batch_size, sampler=self._turn, **options)

    def take(self, own: Cut) -> Iterator[Any]:
        self._turn.numbers = range(self._n)[own] if isinstance(own, slice) else own.tolist()
        return cast("Iterator[Any]", iter(self._loader))
