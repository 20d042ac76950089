"""Rows with ids, at any number of ranks."""

from __future__ import annotations

import numpy as np
import pytest

import malt


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("graph", ["all", "butterfly"])
def test_g14_rows_with_equal_ids_are_combined(r: int, n: int, graph: str, dtype: type) -> None:
    """Rank r holds rows 0 to r, of r + 1 each; so row i is held by the ranks from i on."""
    ids, wants = np.arange(r + 1), np.arange(n + 1)[::-1]
    for fold, expected in [
        ("sum", [sum(range(i + 1, n + 1)) for i in range(n)]),
        ("mean", [(i + 1 + n) / 2 for i in range(n)]),
        ("min", list(range(1, n + 1))),
        ("max", [n] * n),
    ]:
        with malt.Vector((r + 1, 2), ids=ids, wants=wants, fold=fold, graph=graph, dtype=dtype) as v:
            v.array = r + 1
            assert v.sync() == n - 1
            assert v.wanted.dtype == dtype
            assert v.wanted.tolist() == [[0, 0], *([x, x] for x in reversed(expected))]
            assert v.missing.tolist() == [True, *[False] * n]
            assert set(v.array.ravel().tolist()) == {r + 1}


def test_without_wants_the_result_is_in_the_array(r: int, n: int) -> None:
    with malt.Vector(np.array([r, 10.0]), ids=[2**64 - 1, 100 + r]) as v:
        v.sync()
        assert v.array.tolist() == [(n - 1) / 2, 10]
        assert np.shares_memory(v.wanted, v.array)
        assert not v.missing.any()


def test_folding_is_timed(n: int) -> None:
    with malt.Vector(1000, ids=range(1000), fold="sum") as v:
        v.sync()
        assert v.stats().fold_seconds > 0 or n == 1


def test_other_rows(r: int, n: int) -> None:
    with malt.Vector(3, ids=[0, 1, 2], wants=[1], fold="sum") as v:
        old = v.array
        v.array = [1, 2, 3]
        v.sync()
        v.configure(wants=[2, 7, 0])
        assert v.array.tolist() == [1, 2, 3]
        old[:] = 9  # of before: it stays, and is nobody's
        v.sync()
        assert v.wanted.tolist() == [3 * n, 0, n]
        assert v.missing.tolist() == [False, True, False]
        v.configure(ids=[5] * r, wants=[5])
        assert v.array.tolist() == [0] * r
        v.array = 1
        v.sync()
        assert v.wanted.tolist() == [n * (n - 1) / 2]
        assert v.missing.tolist() == [n == 1]
        assert v.stats().scatters == 3
    assert old.tolist() == [9, 9, 9]
