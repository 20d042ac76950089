"""``malt.shard`` of matrices and frames: every row once, in the kind that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shards import Shards

import malt

SIZES = range(1, 9)
ORDERS = ("stride", "block", "shuffle")
SPARSE = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_sparse_matrices_are_cut_by_rows(shards: Shards, order: str, kind: str, family: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.zeros((11, 3), np.float32)
    dense[:, 1] = range(1, 12)
    whole = getattr(sparse, f"{kind}_{family}")(dense)
    for size in SIZES:
        parts = shards(size, whole, np.arange(11), order=order)
        for rows, numbers in parts:
            assert sparse.issparse(rows)
            assert rows.dtype == np.float32
            assert isinstance(rows, sparse.sparray) == (family == "array")
            np.testing.assert_array_equal(rows.toarray(), dense[numbers])
        assert sorted(np.concatenate([numbers for _, numbers in parts])) == list(range(11))


def frame(kind: str) -> Any:
    data = {"x": list(range(11)), "name": list("abcdefghijk")}
    if kind == "pandas":
        # Labels that are not positions, and repeat.
        return pytest.importorskip("pandas").DataFrame(data, index=[3, 2, 1, 0] * 2 + [3, 3, 3])
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(data)
    return pytest.importorskip("pyarrow").table(data)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_are_cut_by_position(shards: Shards, order: str, kind: str) -> None:
    whole = frame(kind)
    for size in SIZES:
        parts = shards(size, whole, whole["name"], np.arange(11), order=order)
        seen: list[int] = []
        for rows, names, numbers in parts:
            assert type(rows) is type(whole)
            assert type(names) is type(whole["name"])
            assert [int(x) for x in np.asarray(rows["x"])] == numbers.tolist()
            assert [str(x) for x in np.asarray(names)] == [str(x) for x in np.asarray(rows["name"])]
            seen += numbers.tolist()
        assert sorted(seen) == list(range(11))


def test_a_lazy_frame_has_to_be_collected() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"a LazyFrame\n.*\nCall collect\(\)"):
        malt.shard(polars.DataFrame({"x": [1]}).lazy())


def test_labels_that_do_not_fit_the_rows_are_named_with_both_lengths() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"data 0 \(DataFrame\) has 3, data 1 \(ndarray\) has 2"):
        malt.shard(pandas.DataFrame({"x": [1, 2, 3]}), np.zeros(2))


def test_uneven_parts_may_be_empty_and_keep_their_kind(shards: Shards) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for order in ORDERS:
        parts = shards(4, sparse.csr_matrix(np.eye(2)), np.zeros((2, 5), np.int16), order=order)
        assert sorted(rows.shape for rows, _ in parts) == [(0, 2), (0, 2), (1, 2), (1, 2)]
        assert {(x.shape[1], x.dtype) for _, x in parts} == {(5, np.dtype(np.int16))}
