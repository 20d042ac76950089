"""World size 1 is the serial script, bit for bit (G1)."""

from __future__ import annotations

import numpy as np
import pytest

import malt

MODES = ["bsp", "async", "ssp:0", "ssp:3", "notify-ack", "notify-ack:4"]


def train(w: np.ndarray, x: np.ndarray, y: np.ndarray, after: object) -> None:
    """A few thousand steps of SGD on the hinge loss, with a decaying rate."""
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        rate = 0.5 / (1 + 0.01 * t)
        w *= 1 - rate * 1e-4
        if label * (row @ w) < 1:
            w += rate * label * row
        after()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("consistency", MODES)
@pytest.mark.parametrize("fold", ["mean", "mean-received", "sum", "replace", lambda own, updates: own * 0])
def test_g1_one_rank_gives_the_bits_of_the_serial_script(dtype: type, consistency: str, fold: object) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((500, 40)).astype(dtype)
    y = np.where(random.random(500) < 0.5, dtype(-1), dtype(1))
    serial = random.standard_normal(40).astype(dtype)
    start = serial.copy()
    train(serial, x, y, lambda: None)

    with malt.Vector(start, consistency=consistency, fold=fold) as v:
        train(v.array, x, y, lambda: v.sync(every=7, weight=3.0))
        v.allreduce()
        v.broadcast()
        assert v.array.tobytes() == serial.tobytes()
        assert v.stats().sent_bytes == 0


def test_g1_the_collective_calls_return_what_they_got() -> None:
    array = np.random.default_rng(2).standard_normal(1000)
    for op in ("mean", "sum", "min", "max"):
        combined = malt.allreduce(array, op)
        assert combined.tobytes() == array.tobytes()
        assert combined is not array
        assert malt.allreduce(0.1, op) == 0.1
    assert malt.allgather(array)[0].tobytes() == array.tobytes()
    assert malt.broadcast(array).tobytes() == array.tobytes()
    malt.barrier()


@pytest.mark.parametrize(
    ("value", "op", "expected"),
    [
        (3, "sum", 3),
        (10**30, "max", 10**30),
        (3, "mean", 3.0),
        (True, "max", True),
        (True, "sum", 1),
        (True, "mean", 1.0),
        (0.25, "min", 0.25),
        (1 + 2j, "sum", 1 + 2j),
        (np.float32(0.1), "mean", np.float32(0.1)),
        (np.int8(100), "sum", np.int64(100)),
        (np.array([200], np.uint8), "sum", np.array([200], np.uint64)),
        (np.array([1, 2]), "mean", np.array([1.0, 2.0])),
        (np.array([True, False]), "max", np.array([True, False])),
        (np.array(2.5), "mean", np.array(2.5)),
    ],
    ids=repr,
)
def test_kinds_of_numbers(value: object, op: str, expected: object) -> None:
    got = malt.allreduce(value, op)
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)
    assert getattr(got, "dtype", None) == getattr(expected, "dtype", None)


def test_who_is_alone() -> None:
    assert (malt.rank(), malt.size(), malt.local_rank(), malt.generation()) == (0, 1, 0, 1)


def test_sync_every_counts_its_calls() -> None:
    with malt.Vector(3) as v:
        for k in range(1, 13):
            v.array += 1
            assert v.sync(every=4) == (0 if k % 4 == 0 else None)
        assert v.clock == 3
        due = [v.sync(every=every) is not None for every in (4, 4, 4, 2, 3, 3, 1, 3, True + 1)]
        assert due == [False, False, False, True, False, False, True, True, False]


def test_each_call_of_sync_every_counts_by_itself() -> None:
    with malt.Vector(3) as v:
        first, second = [], []
        for _ in range(8):
            v.array += 1
            first.append(v.sync(every=4) is not None)
            second.append(v.sync(every=2) is not None)
        assert first == [k % 4 == 0 for k in range(1, 9)]
        assert second == [k % 2 == 0 for k in range(1, 9)]
        typed = compile("v.sync(every=2)", "<stdin>", "single"), compile("v.sync(every=2)", "<stdin>", "single")
        clock = v.clock
        for line in typed:  # the same line, typed again
            exec(line, {"v": v})
        assert v.clock == clock + 1


@pytest.mark.parametrize("exchange", ["sync", "scatter", "allreduce"])
def test_a_loop_that_changes_the_array_that_was_copied_is_explained(exchange: str) -> None:
    weights = np.zeros(5, np.float32)
    with malt.Vector([np.ones(2), weights], name="net") as model:
        weights -= 0.5  # the mistake
        model.arrays[0][:] -= 0.5  # this one is right
        with pytest.warns(RuntimeWarning) as caught:
            getattr(model, exchange)()
        assert caught[0].filename == __file__
        assert str(caught[0].message).splitlines()[:3] == [
            "malt: `weights` changes, and the array of vector 'net' does not, so nothing is learnt",
            "malt.Vector copies the values that it is given: `model.arrays[1]` is another array",
            "Write `weights = model.arrays[1]` after making the vector, and change that.",
        ]
        weights -= 0.5
        model.allreduce()  # said once


@pytest.mark.filterwarnings("error")
def test_the_array_that_was_copied_may_change_where_the_vector_does() -> None:
    w = np.zeros(5)
    with malt.Vector(w) as v:
        for _ in range(3):
            w -= 0.5
            v.array[:] = w
            v.sync()
    with malt.Vector(np.ones(3), consistency="async") as v:  # of a rank that only passes on
        for _ in range(4):
            v.scatter()
            v.gather()


def test_a_vector_that_never_changes_is_explained() -> None:
    with malt.Vector(np.ones(5)) as v:
        w = v.array
        v.sync()
        w = w - 0.5  # the mistake
        with pytest.warns(RuntimeWarning, match=r"w -= g") as caught:
            v.sync()
        assert caught[0].filename == __file__
        v.sync()  # said once


@pytest.mark.parametrize("change_before", [1, 2])
def test_a_vector_that_changes_is_left_alone(change_before: int) -> None:
    with malt.Vector(np.ones(5)) as v:
        for k in range(1, 5):
            if k == change_before:
                v.array[3] = np.nan
            v.sync()


def test_bsp_wants_a_scatter_before_a_gather_and_one_only() -> None:
    with malt.Vector(3, name="turns") as v:
        with pytest.raises(malt.StateError, match=r"scatter\(\) first"):
            v.gather()
        v.scatter()
        with pytest.raises(malt.StateError, match="gather"):
            v.scatter()
        v.gather()


def test_repr_and_attributes() -> None:
    def mine(own, updates):
        return own

    with malt.Vector(3, graph="ring", consistency="ssp:2", fold=mine, name="w") as v:
        assert (v.name, v.consistency, v.fold, v.clock) == ("w", "ssp:2", mine, 0)
        assert v.graph == malt.Graph("ring")
        assert (v.senders, v.receivers) == ([], [])
        v.configure(graph="halton", consistency="bsp", fold="sum")
        assert (v.graph.spec, v.consistency, v.fold) == ("halton", "bsp", "sum")
        assert repr(v) == "Vector('w', 3 x float64, graph='halton', consistency='bsp', fold='sum', clock=0)"
    assert repr(v).endswith("closed)")
