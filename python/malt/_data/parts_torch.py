"""How `malt.shard` cuts the data sets and samplers of PyTorch, as what a DataLoader takes them for.

Loaded when the first of them is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, Subset

from .._guide import lines
from .turns import Cut, Turns, skip


def length(position: int, x: Any) -> int | None:
    """Return the number of items; None if they can only be gone through in turn."""
    kind = type(x).__qualname__
    if isinstance(x, DataLoader):
        raise TypeError(
            lines(
                f"data {position} is a DataLoader, which would load the items of all ranks",
                do="Cut the data set that it loads, DataLoader(malt.shard(dataset), …).",
            )
        )
    if isinstance(x, Sampler):
        own = _unseeded(x)
        if own is not None:
            raise TypeError(
                lines(
                    f"data {position} is a {own} without a generator: ranks would differ in its order",
                    "Cut the data set instead, DataLoader(malt.shard(dataset), shuffle=True),",
                    "or give it generator=torch.Generator().manual_seed(0), the same on every rank.",
                )
            )
        return None
    if isinstance(x, IterableDataset):
        return None
    if not hasattr(x, "__len__"):
        raise TypeError(
            lines(f"data {position} is a {kind} without a length", do="Give it __len__, or make it an IterableDataset.")
        )
    return len(x)


def part(x: Any, n: int | None, cut: Cut, turns: Turns) -> Any:
    """Return those of the items: a Subset, an IterableDataset, or a sampler."""
    if isinstance(x, Sampler):
        return _SamplerPart(x, turns)
    if isinstance(x, IterableDataset):
        return _IterablePart(x, turns)
    assert n is not None
    return Subset(x, range(n)[cut] if isinstance(cut, slice) else cut.tolist())


def _unseeded(sampler: Any) -> str | None:
    """Return the class of the sampler, or of one that it draws from, that uses the rank's own random numbers."""
    while isinstance(sampler, Sampler):
        if getattr(sampler, "generator", sampler) is None:
            return type(sampler).__qualname__
        sampler = getattr(sampler, "sampler", None)
    return None


class _IterablePart(IterableDataset[Any]):
    """Every size-th item of an iterable data set.

    In the workers of a DataLoader it is what the data set is there: cut by worker
    if the data set does that, and otherwise the same in each.
    """

    def __init__(self, whole: Dataset[Any], turns: Turns) -> None:
        self._whole = whole
        self._turns = turns

    def __iter__(self) -> Iterator[Any]:
        return skip(self._whole, self._turns)  # type: ignore[arg-type]


class _SamplerPart(Sampler[Any]):
    """Every size-th of the indices, or batches of them, that a sampler gives."""

    def __init__(self, whole: Any, turns: Turns) -> None:
        self._whole = whole
        self._turns = turns

    def __iter__(self) -> Iterator[Any]:
        return skip(self._whole, self._turns)

    def __len__(self) -> int:
        return self._turns.count(len(self._whole))
