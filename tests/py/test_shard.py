"""``malt.shard``: disjoint, complete, even, and the same cut for all that belongs together."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shards import Shards

import malt

SIZES = range(1, 9)
ORDERS = ("stride", "block", "shuffle")
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 100)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [list, tuple, range, np.array, deque])
def test_parts_are_disjoint_complete_and_even(shards: Shards, order: str, size: int, kind: Any) -> None:
    for length in LENGTHS:
        data = range(length) if kind is range else kind(list(range(length)))
        parts = [list(part) for part in shards(size, data, order=order)]
        assert sorted(itertools.chain(*parts)) == list(range(length))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_even_parts_are_equally_long(shards: Shards, order: str, size: int) -> None:
    for length in LENGTHS:
        data = list(range(length))
        padded = shards(size, data, order=order, even="pad")
        assert {len(part) for part in padded} == {-(-length // size)}
        assert set(itertools.chain(*padded)) == set(data)
        dropped = shards(size, np.arange(length), order=order, even="drop")
        assert {len(part) for part in dropped} == {length // size}
        assert len({*itertools.chain(*dropped)}) == length // size * size


def test_even_changes_nothing_of_parts_that_are_even(shards: Shards) -> None:
    for order in ORDERS:
        for even in ("pad", "drop"):
            assert shards(3, range(9), order=order, even=even) == shards(3, range(9), order=order)
    assert shards(3, list(range(8)), even="pad") == [[0, 3, 6], [1, 4, 7], [2, 5, 0]]
    assert shards(3, list(range(8)), order="block", even="pad") == [[0, 1, 2], [3, 4, 5], [6, 7, 0]]
    assert shards(3, list(range(8)), order="block", even="drop") == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("even", ["pad", "drop"])
@pytest.mark.parametrize("size", SIZES)
def test_even_parts_of_what_comes_in_turn_are_those_of_a_list(shards: Shards, size: int, even: str) -> None:
    for length in LENGTHS:
        whole = shards(size, list(range(length)), even=even)
        generated = shards(size, lambda n=length: (i for i in range(n)), even=even)
        assert [list(part) for part in generated] == whole

        class Stream:
            def __iter__(self, n: int = length) -> Iterator[int]:
                return iter(range(n))

        again = shards(size, Stream(), even=even)
        assert [list(part) for part in again] == [list(part) for part in again] == whole


def test_stride_and_block_are_what_they_say(shards: Shards) -> None:
    assert shards(3, list(range(8))) == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert shards(3, list(range(8)), order="block") == [[0, 1], [2, 3, 4], [5, 6, 7]]


def test_alone_a_rank_gets_everything() -> None:
    assert malt.shard([3, 1, 2]) == [3, 1, 2]
    assert malt.shard([3, 1, 2], order="block") == [3, 1, 2]
    assert sorted(malt.shard([3, 1, 2], order="shuffle")) == [1, 2, 3]


@pytest.mark.parametrize("order", ORDERS)
def test_rows_and_labels_stay_together(shards: Shards, order: str) -> None:
    rows = np.arange(60.0).reshape(20, 3)
    labels = [f"label {i}" for i in range(20)]
    for mine, names, numbers in shards(4, rows, labels, range(20), order=order):
        assert [f"label {int(row[0] // 3)}" for row in mine] == list(names)
        assert [f"label {i}" for i in numbers] == list(names)


def test_stride_and_block_of_an_array_are_views(shards: Shards) -> None:
    x = np.zeros((10, 2), np.float32)
    for order in ("stride", "block"):
        for part in shards(3, x, order=order):
            assert np.shares_memory(part, x)
    for part in shards(3, x, order="shuffle"):
        assert not np.shares_memory(part, x)
        assert part.dtype == x.dtype


def test_types_of_the_parts(shards: Shards) -> None:
    for order in ORDERS:
        assert isinstance(shards(2, [1, 2], order=order)[0], list)
        assert isinstance(shards(2, (1, 2), order=order)[0], tuple)
    assert shards(2, range(10))[1] == range(1, 10, 2)


def test_shuffle_depends_on_the_seed_alone(shards: Shards) -> None:
    data = list(range(1000))
    first = shards(3, data, order="shuffle", seed=1)
    assert first == shards(3, data, order="shuffle", seed=1)
    assert first != shards(3, data, order="shuffle", seed=2)
    assert shards(3, data, order="shuffle") == shards(3, data, order="shuffle", seed=0)
    # Frozen: ranks with different versions of numpy must cut alike.
    assert shards(2, list(range(8)), order="shuffle", seed=7) == [[2, 0, 3, 4], [5, 6, 1, 7]]


def test_iterables_without_a_length_are_cut_lazily(shards: Shards) -> None:
    parts = shards(3, itertools.count)
    assert [list(itertools.islice(part, 3)) for part in parts] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    taken = []

    def source() -> Iterator[int]:
        for i in range(10):
            taken.append(i)
            yield i

    part = shards(2, source)[1]
    assert taken == []
    assert (next(part), taken) == (1, [0, 1])


def test_an_iterable_can_be_iterated_again(shards: Shards) -> None:
    class Rows:
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    part = shards(2, Rows())[1]
    assert (list(part), list(part)) == ([1, 3], [1, 3])


class Dataset:
    """Has a length and items, and knows nothing of slices."""

    def __len__(self) -> int:
        return 7

    def __getitem__(self, i: int) -> str:
        if not isinstance(i, int):
            raise TypeError(f"{i!r}")
        if not 0 <= i < 7:
            raise IndexError(i)
        return f"item {i}"


@pytest.mark.parametrize("order", ORDERS)
def test_data_sets_are_looked_up_when_asked(shards: Shards, order: str) -> None:
    parts = shards(3, Dataset(), order=order)
    assert sorted(itertools.chain(*parts)) == [f"item {i}" for i in range(7)]
    assert sorted(len(part) for part in parts) == [2, 2, 3]
    part = parts[0]
    assert part[-1] == part[len(part) - 1]
    assert list(part[1:]) == list(part)[1:]
    assert "of the 7 items of a Dataset" in repr(part)
    with pytest.raises(IndexError):
        part[len(part)]


def test_arrays_in_a_list_or_tuple_may_be_the_items(shards: Shards) -> None:
    images = [np.full((3, 3), i) for i in range(5)]
    assert [part[0][0, 0] for part in shards(2, images)] == [0, 1]
    ragged = tuple(np.zeros(i) for i in (1, 2))
    assert [len(part) for part in shards(2, ragged)] == [1, 1]


@pytest.mark.parametrize(
    ("data", "options", "error", "says"),
    [
        ((), {}, TypeError, "without data"),
        (([1, 2],), {"order": "shufle"}, ValueError, "Did you mean 'shuffle'"),
        (([1, 2],), {"order": 3}, TypeError, "stride, block, shuffle"),
        (([1, 2], (1,)), {}, ValueError, r"data 0 \(list\) has 2, data 1 \(tuple\) has 1\nData that you cut together"),
        (([1], iter([1]), (1, 2)), {}, ValueError, r"has 1, data 1 \(list_iterator\) has no length, data 2 .* has 2"),
        ((iter([1]),), {"order": "block"}, TypeError, "list_iterator, whose items come one by one\nUse order='stride'"),
        (([1],), {"even": "padd"}, ValueError, "Did you mean 'pad'"),
        ((iter([1]),), {"order": "shuffle"}, TypeError, "make it a list"),
        (((np.zeros((9, 2)), np.zeros(9)),), {}, TypeError, r"each with 9 items\nDid you mean malt.shard\(X, y\)\?"),
        (([np.zeros((9, 2)), np.zeros(9)],), {}, TypeError, r"(?s)list of 2 arrays.*Did you mean malt.shard\(X, y\)\?"),
        (((np.zeros(9),) * 3,), {}, TypeError, r"malt.shard\(X, y, …\)\?"),
        ((lambda: iter([1]),), {}, TypeError, "a function"),
        ((Path("rows.csv"),), {}, TypeError, "the path 'rows.csv'\nmalt.load reads"),
        (([1],), {"seed": 1}, ValueError, "only order='shuffle' has a seed"),
        (([1],), {"order": "shuffle", "seed": -1}, ValueError, "seed=-1\nexpected 0 to 4294967295"),
        (([1],), {"order": "shuffle", "seed": 1.5}, TypeError, "seed=1.5\nexpected a whole number"),
        (({1, 2},), {}, TypeError, r"is a set\n.*order may differ.*\n.*sorted"),
        (({1: 2},), {}, TypeError, "is a dict\n.*order"),
        (("train.csv",), {}, TypeError, "the string 'train.csv'"),
        ((3,), {}, TypeError, "data 0 is 3, a int"),
        (([1], np.float32(3)), {}, TypeError, "data 1 is a float32 without an axis"),
    ],
)
def test_mistakes_are_explained(
    data: tuple[Any, ...], options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        malt.shard(*data, **options)


def test_ranks_of_a_job_get_their_own_parts() -> None:
    parts = malt.run(malt.shard, 3, args=(list(range(10)),), kwargs={"order": "shuffle", "seed": 3})
    assert sorted(itertools.chain(*parts)) == list(range(10))
