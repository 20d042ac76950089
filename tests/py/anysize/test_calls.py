"""The calls that all ranks make together."""

from __future__ import annotations

import numpy as np
import pytest

import malt

OPS = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max}


def test_ranks_are_numbered_and_count_the_same(r: int, n: int) -> None:
    assert malt.allgather((malt.rank(), malt.size(), malt.generation())) == [(i, n, 1) for i in range(n)]
    assert 0 <= malt.local_rank() < n


@pytest.mark.parametrize("op", OPS)
def test_allreduce_of_numbers(r: int, n: int, op: str) -> None:
    expected = OPS[op](np.arange(1, n + 1))
    assert malt.allreduce(r + 1, op) == expected
    assert malt.allreduce(float(r + 1), op) == expected
    assert malt.allreduce(np.float32(r + 1), op) == np.float32(expected)


def test_whole_numbers_are_exact_however_large(r: int, n: int) -> None:
    assert malt.allreduce(10**30 + r, "max") == 10**30 + n - 1
    assert malt.allreduce(10**30 + r, "sum") == n * 10**30 + n * (n - 1) // 2


def test_allreduce_of_flags(r: int, n: int) -> None:
    last = r == n - 1
    assert malt.allreduce(last, "max") is True
    assert malt.allreduce(last, "min") is (n == 1)
    assert malt.allreduce(last, "sum") == 1


def test_a_rank_without_examples_may_have_a_whole_number_for_a_loss(r: int, n: int) -> None:
    assert malt.allreduce(0 if r else 0.5, "sum") == 0.5


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.float16, np.complex64])
def test_allreduce_of_arrays(r: int, n: int, op: str, dtype: type) -> None:
    if op in ("min", "max") and dtype is np.complex64:
        return
    values = [(np.arange(12).reshape(3, 4) + i).astype(dtype) for i in range(n)]
    got = malt.allreduce(values[r], op)
    np.testing.assert_array_equal(got, OPS[op](np.stack(values), axis=0))
    assert got.shape == (3, 4)
    assert got.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 100_003])
def test_allreduce_gives_every_rank_the_same_bits(r: int, n: int, dtype: type, size: int) -> None:
    mine = np.random.default_rng(r).standard_normal(size).astype(dtype)
    before = mine.copy()
    bits = malt.allreduce(mine, "mean").tobytes()
    assert len(set(malt.allgather(bits))) == 1
    np.testing.assert_array_equal(mine, before)


def test_allreduce_takes_any_layout(r: int, n: int) -> None:
    array = np.arange(12.0).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(malt.allreduce(array, "mean"), array)


def test_broadcast_from_every_rank(r: int, n: int) -> None:
    for root in range(n):
        value = {"from": root, "values": np.arange(root + 1), "more": [None, True, "é", b"\0", (1.5, 2j)]}
        got = malt.broadcast(value if r == root else object(), root)
        np.testing.assert_array_equal(got.pop("values"), np.arange(root + 1))
        assert got == {"from": root, "more": [None, True, "é", b"\0", (1.5, 2j)]}


def test_a_broadcast_array_is_the_receivers_own(r: int, n: int) -> None:
    got = malt.broadcast(np.zeros(3))
    got += r
    malt.barrier()
    assert got.tolist() == [r] * 3


def test_allgather_of_values_of_different_kinds_and_sizes(r: int, n: int) -> None:
    got = malt.allgather("x" * r if r % 2 else np.full(1000 * r, r))
    assert len(got) == n
    for i, value in enumerate(got):
        if i % 2:
            assert value == "x" * i
        else:
            np.testing.assert_array_equal(value, np.full(1000 * i, i))


def test_large_values(r: int, n: int) -> None:
    got = malt.allgather(np.full(300_000, r, np.float32))
    assert [value[-1] for value in got] == list(range(n))


def test_what_is_refused_here_disturbs_nobody(r: int, n: int) -> None:
    if r == 0:
        with pytest.raises(ValueError, match="op="):
            malt.allreduce(1.0, "avg")
        with pytest.raises(ValueError, match="root="):
            malt.broadcast(1, root=n)
        with pytest.raises(TypeError, match="set"):
            malt.allgather({1})
    assert malt.allreduce(1, "sum") == n


def test_many_collectives_in_a_row(r: int, n: int) -> None:
    for k in range(50):
        assert malt.allreduce(k * n + r, "max") == k * n + n - 1
        malt.barrier()
