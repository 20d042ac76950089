"""``malt.shard`` of PyTorch's data sets and samplers, and what a DataLoader makes of the parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from shards import Shards

import malt

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")
data = pytest.importorskip("torch.utils.data")

SIZES = range(1, 9)
ORDERS = ("stride", "block", "shuffle")


class Squares(data.Dataset):  # type: ignore[misc, name-defined]
    """Knows nothing of slices."""

    def __len__(self) -> int:
        return 11

    def __getitem__(self, i: int) -> int:
        assert type(i) is int
        return i * i


class Endless(data.IterableDataset):  # type: ignore[misc, name-defined]
    def __iter__(self) -> Iterator[int]:
        return itertools.count()


class ByWorker(data.IterableDataset):  # type: ignore[misc, name-defined]
    """Cut by the worker, as an iterable data set that has workers must be."""

    def __iter__(self) -> Iterator[int]:
        worker = data.get_worker_info()
        return iter(range(worker.id, 20, worker.num_workers) if worker else range(20))


def loaded(part: Any, **options: Any) -> list[int]:
    return [int(x) for batch in data.DataLoader(part, batch_size=3, **options) for x in batch]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_data_sets_become_subsets(shards: Shards, order: str, size: int) -> None:
    parts = shards(size, Squares(), np.arange(11), order=order)
    for part, numbers in parts:
        assert isinstance(part, data.Subset)
        assert loaded(part) == [i * i for i in numbers]
        if len(part):  # DataLoader refuses to shuffle nothing
            assert sorted(loaded(part, shuffle=True)) == sorted(i * i for i in numbers)
    assert sorted(i for _, numbers in parts for i in numbers) == list(range(11))


def test_tensors_are_cut_like_arrays(shards: Shards) -> None:
    x = torch.arange(22).reshape(11, 2)
    for order in ORDERS:
        for size in SIZES:
            parts = shards(size, x, order=order)
            assert sorted(torch.cat(parts)[:, 0].tolist()) == list(range(0, 22, 2))
    assert shards(2, x)[1].data_ptr() == x[1:].data_ptr()


def test_iterable_data_sets_stay_iterable(shards: Shards) -> None:
    parts = shards(3, Endless())
    for rank, part in enumerate(parts):
        assert isinstance(part, data.IterableDataset)
        batches = iter(data.DataLoader(part, batch_size=2))
        assert [next(batches).tolist() for _ in range(2)] == [[rank, rank + 3], [rank + 6, rank + 9]]
        assert list(itertools.islice(part, 2)) == list(itertools.islice(part, 2)) == [rank, rank + 3]


def test_iterable_data_sets_in_workers(shards: Shards) -> None:
    parts = shards(2, ByWorker())
    seen = [loaded(part, num_workers=2, multiprocessing_context="fork") for part in parts]
    assert sorted(itertools.chain(*seen)) == list(range(20))


@pytest.mark.parametrize("size", SIZES)
def test_samplers(shards: Shards, size: int) -> None:
    def shuffled() -> Any:
        return data.RandomSampler(range(11), generator=torch.Generator().manual_seed(5))

    for sampler in (lambda: data.SequentialSampler(range(11)), shuffled):
        parts = shards(size, sampler)
        assert [len(part) for part in parts] == [len(range(rank, 11, size)) for rank in range(size)]
        seen = [loaded(Squares(), sampler=part) for part in parts]
        assert [len(x) for x in seen] == [len(part) for part in parts]
        assert sorted(itertools.chain(*seen)) == [i * i for i in range(11)]
        for even, each in ("pad", -(-11 // size)), ("drop", 11 // size):
            parts = shards(size, sampler, even=even)
            assert [len(part) for part in parts] == [len(list(part)) for part in parts] == [each] * size
            assert len(set(itertools.chain(*parts))) == (11 if even == "pad" else each * size)
    batches = shards(size, lambda: data.BatchSampler(shuffled(), 2, drop_last=False))
    assert sorted(i for part in batches for batch in part for i in batch) == list(range(11))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: data.DataLoader(Squares()), r"DataLoader\(malt.shard\(dataset\), …\)"),
        (lambda: data.RandomSampler(range(3)), r"(?s)a RandomSampler without a generator: .*manual_seed\(0\)"),
        (
            lambda: data.BatchSampler(data.WeightedRandomSampler([1.0], 1), 2, False),
            "a WeightedRandomSampler without",
        ),
        (lambda: data.Dataset(), "a Dataset without a length\nGive it __len__"),
        (lambda: (torch.zeros(4, 2), torch.zeros(4)), r"Did you mean malt.shard\(X, y\)\?"),
    ],
)
def test_mistakes_are_explained(wrong: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        malt.shard(wrong())


def test_what_comes_in_turn_cannot_be_cut_in_blocks() -> None:
    for x in (data.SequentialSampler(range(3)), Endless()):
        with pytest.raises(TypeError, match="whose items come one by one\nUse order='stride'"):
            malt.shard(x, order="block")
