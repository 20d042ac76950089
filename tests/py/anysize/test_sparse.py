"""Sparse vectors: naive whole arrays are what they are held against, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import malt

ROWS, WIDTH = 60, 50
FOLDS = ["mean", "mean-received", "sum", "min", "max", "replace"]


def changed_rows(rank: int, clock: int) -> np.ndarray:
    return np.flatnonzero(np.random.default_rng([rank, clock]).random(ROWS) < 0.1)


def change(values: np.ndarray, rank: int, clock: int) -> np.ndarray:
    """Give the rows that rank changes at clock whole numbers that come once."""
    rows = changed_rows(rank, clock)
    values[rows] = (1 + rows[:, None]) * 64 + 8 * clock + rank + np.arange(WIDTH)
    return rows


def combine(fold: str, own: np.ndarray, received: list[tuple[int, np.ndarray]], rank: int) -> np.ndarray:
    """Fold rows of equal clock: own counts in its place by rank, unless the fold leaves it out."""
    operands = list(received)
    if fold not in ("replace", "mean-received"):
        operands = sorted([*operands, (rank, own)], key=lambda o: o[0])
    values = [o[1] for o in operands]
    if fold == "replace":
        return values[0]  # equal clocks: the lowest rank
    if fold in ("min", "max"):
        return np.min(values, axis=0) if fold == "min" else np.max(values, axis=0)
    total = values[0].copy()
    for x in values[1:]:
        total += x
    return total / np.float32(len(values)) if fold.startswith("mean") else total


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("named", [False, True])
def test_model_rows_that_changed_are_folded_and_others_stay(r: int, n: int, fold: str, named: bool) -> None:
    """On every rank the naive models of all ranks are carried along."""
    models = [np.zeros((ROWS, WIDTH), np.float32) for _ in range(n)]
    sent = [m.copy() for m in models]
    with malt.Vector((ROWS, WIDTH), dtype=np.float32, sparse="model", fold=fold) as v:
        for clock in range(1, 8):
            touched = change(v.array, r, clock)
            assert v.sync(rows=touched if named else None) == n - 1
            mentions = []
            for rank in range(n):
                rows = change(models[rank], rank, clock)
                if not named:
                    rows = np.flatnonzero((models[rank] != sent[rank]).any(axis=1))
                sent[rank][rows] = models[rank][rows]
                mentions.append(set(rows.tolist()))
            new = [m.copy() for m in models]
            for rank in range(n):
                for row in range(ROWS):
                    received = [(q, models[q][row]) for q in range(n) if q != rank and row in mentions[q]]
                    if received:
                        new[rank][row] = combine(fold, models[rank][row], received, rank)
            models = new
            np.testing.assert_array_equal(v.array, models[r], err_msg=f"clock {clock}")


@pytest.mark.parametrize("fold", FOLDS)
def test_gradient_rows_that_are_missing_count_as_zero(r: int, n: int, fold: str) -> None:
    if n == 1:
        return
    with malt.Vector((ROWS, WIDTH), dtype=np.float32, sparse="gradient", fold=fold) as v:
        for clock in range(1, 6):
            gradients = [np.zeros((ROWS, WIDTH), np.float32) for _ in range(n)]
            for rank in range(n):
                change(gradients[rank], rank, clock)
                if clock == 5:
                    gradients[rank] += 1  # everything travels
            v.array = gradients[r]
            assert v.sync() == n - 1
            received = [(q, gradients[q]) for q in range(n) if q != r]
            np.testing.assert_array_equal(v.array, combine(fold, gradients[r], received, r), err_msg=f"clock {clock}")


def test_gradients_on_all_are_the_same_bits_on_every_rank(r: int, n: int) -> None:
    rng = np.random.default_rng(r)
    with malt.Vector((500, 20), sparse="gradient") as v:
        for _ in range(5):
            v.array = rng.standard_normal((500, 20)) * (rng.random((500, 1)) < 0.05)
            v.sync()
            assert len(set(malt.allgather(v.array.tobytes()))) == 1


@pytest.mark.parametrize("consistency", ["async", "ssp:1", "bsp", "notify-ack:2"])
def test_no_row_is_lost_or_folded_twice(r: int, n: int, consistency: str) -> None:
    """Each rank counts in rows of its own; a fold of ours looks at each value that comes."""
    seen = np.zeros(ROWS)

    def look(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        for u in updates:
            assert u.rows is not None
            assert u.values is not None
            assert (u.rows % n == u.rank).all()
            assert (u.values > seen[u.rows]).all(), "a row came twice"
            seen[u.rows] = u.values
        return own

    lockstep = consistency in ("bsp", "notify-ack:2")
    rng = np.random.default_rng(r)
    with malt.Vector(ROWS, sparse="model", consistency=consistency, fold=look) as v:
        mine = np.arange(r, ROWS, n)
        for clock in range(1, 40):
            rows = mine[rng.random(len(mine)) < 0.2]
            v.array[rows] = clock
            v.scatter()
            if lockstep or rng.random() < 0.3:
                v.gather()
        if not lockstep:
            malt.barrier()
            v.gather()
        seen[mine] = v.array[mine]
        for last in malt.allgather(seen):
            np.testing.assert_array_equal(last, seen)


def test_rows_of_skipped_calls_are_sent_along(r: int, n: int) -> None:
    with malt.Vector(ROWS, sparse="model", fold="max") as v:
        for step in range(6):
            v.array[2 * step + 20 : 2 * step + 22] = 1 + r
            v.array[5] = 100 + r  # is not named
            folded = v.sync(rows=[2 * step + 20, 2 * step + 21], every=3)
            assert folded == (n - 1 if step % 3 == 2 else None)
        assert (v.array[20:32] == n).all()
        assert v.array[5] == 100 + r
        for rows in [0], None:  # None looks
            v.sync(rows=rows, every=2)
        assert v.array[5] == 100 + n - 1


def test_rows_may_be_a_mask_or_a_sparse_matrix(r: int, n: int) -> None:
    scipy = pytest.importorskip("scipy.sparse")
    batch = scipy.random_array((4, ROWS), density=0.05, rng=np.random.default_rng(3), format="csr")
    columns = np.unique(batch.indices)
    mask = np.zeros(ROWS, bool)
    mask[columns] = True
    expected = 8 + (4 * len(columns) + 7) // 8 * 8 + 8 * len(columns)
    one_axis = scipy.coo_array((np.ones(len(columns)), (columns,)), shape=(ROWS,))
    forms = [columns, columns[::-1].astype(np.int32), columns.tolist(), columns.astype(np.uint16), mask, batch]
    forms += [batch.tocsc(), batch.tocoo(), scipy.csr_matrix(batch), one_axis]
    for rows in forms:
        with malt.Vector(ROWS, sparse="model") as v:
            assert v.scatter(rows) == (n - 1) * expected
            v.gather()
    with malt.Vector(ROWS, sparse="model") as v:
        assert v.scatter(7) == (n - 1) * (8 + 8 + 8)  # one row
        v.gather()
        malt.barrier()  # now all have folded it, and it need not come again
        assert v.scatter([]) == (n - 1) * 8
        v.gather()


@pytest.mark.parametrize("kind", ["model", "gradient"])
def test_a_fold_of_ones_own_sees_rows_and_whole_arrays(r: int, n: int, kind: str) -> None:
    calls = []

    def fold(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        before, total = own.copy(), own.copy()
        own[:] = -1  # what updates show does not change with it
        for u in updates:
            calls.append(u.rank)
            assert u.rows is not None
            assert u.values is not None
            assert u.rows.tolist() == sorted({u.rank, ROWS - 1})
            assert u.values.shape == (2, WIDTH)
            expected = before.copy() if kind == "model" else np.zeros((ROWS, WIDTH))
            expected[u.rows] = u.rank + 1
            np.testing.assert_array_equal(u.array, expected)
            with pytest.raises(ValueError, match="read-only"):
                u.array[0] = 0
            total[u.rows] += u.values
        return total

    with malt.Vector((ROWS, WIDTH), sparse=kind) as v:
        v.array[[r, ROWS - 1]] = r + 1
        v.scatter()
        assert v.gather(fold) == n - 1
        assert v.array[ROWS - 1, 0] == sum(range(1, n + 1))
        assert len(calls) == n - 1


def test_collectives_make_all_equal_and_nothing_travels_then(r: int, n: int) -> None:
    with malt.Vector(ROWS, sparse="model", consistency="async", fold="replace") as v:
        v.array[r] = r + 1
        v.scatter()
        v.allreduce("max")
        np.testing.assert_array_equal(v.array[:n], np.arange(1, n + 1))
        assert v.scatter() == (n - 1) * 8
        v.array += r
        v.broadcast(n - 1)
        assert v.scatter() == (n - 1) * 8
        assert v.sparse == "model"
        v.configure(graph="ring", consistency="bsp", fold="max")
        v.array[10 + r] = 1000 + r
        assert v.sync() == (n > 1)
        assert v.array[10 + (r - 1) % n] == 1000 + (r - 1) % n


def test_world_of_one_is_serial(r: int, n: int) -> None:
    if n > 1:
        return
    serial = np.random.default_rng(0).standard_normal((ROWS, WIDTH))
    for kind in ("model", "gradient"):
        with malt.Vector(serial.copy(), sparse=kind) as v:
            own = serial.copy()
            for step in range(10):
                own[step] -= 0.1 * own[step + 1]
                v.array[step] -= 0.1 * v.array[step + 1]
                assert v.sync(rows=[step] if step % 2 else None) == 0
            assert v.array.tobytes() == own.tobytes()
        assert f"sparse={kind!r}" in repr(v)


@pytest.mark.parametrize("named", ["dvf:1", "dvf:1:4", "top:5%"])
def test_a_filter_holds_back_what_has_changed_little(r: int, n: int, named: str) -> None:
    with malt.Vector(ROWS, sparse="model", filter=named, fold="replace") as v:
        assert v.filter == named
        assert f"sparse='model', filter={named!r}" in repr(v)
        large, small, others = slice(3 * r, 3 * r + 3), 30 + r, [q for q in range(n) if q != r]
        v.array[large] = 5
        v.array[small] = 0.5
        v.sync()
        assert all((v.array[3 * q : 3 * q + 3] == 5).all() for q in range(n))
        assert (v.array[[30 + q for q in others]] == 0).all()
        assert v.array[small] == 0.5
        v.allreduce("max")
        assert (v.array[30 : 30 + n] == 0.5).all()
        assert v.scatter() == (n - 1) * 8
    with malt.Vector(ROWS, sparse="model") as v:
        assert v.filter is None
