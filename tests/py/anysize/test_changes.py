"""Folds of changes, at any number of ranks: whole numbers in floats, so that sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import malt


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("consistency", "graph"),
    [
        *[("bsp", "all"), ("ssp:2", "all"), ("async", "all"), ("ssp:2", "butterfly"), ("async", "butterfly")],
        *[("ssp:2", "shards"), ("async", "shards:1")],
    ],
)
def test_g13_every_change_is_there_in_the_end(r: int, n: int, consistency: str, graph: str, dtype: type) -> None:
    with malt.Vector(np.full(1001, 5, dtype), fold="sum-changes", consistency=consistency, graph=graph) as v:
        for era in range(1, 3):
            for _ in range(r + 1):  # each rank has its own number of syncs
                v.array += 2
                v.sync()
                assert v.age <= {"bsp": 0, "ssp:2": 2, "async": r + 1}[consistency]
            v.array += 1
            v.allreduce()
            assert set(v.array.tolist()) == {5 + era * (n * (n + 1) + n)}
        v.array += r
        v.broadcast(n - 1)
        v.array += 1
        v.allreduce()
        assert set(v.array.tolist()) == {5 + 2 * (n * (n + 1) + n) + (n - 1) + n}


@pytest.mark.parametrize(
    ("consistency", "graph"), [("bsp", "all"), ("ssp:0", "all"), ("ssp:0", "butterfly"), ("ssp:0", "shards")]
)
def test_infinity_that_stays_is_no_change(n: int, consistency: str, graph: str) -> None:
    mask = [0, -np.inf, np.inf]  # of an attention, say, among the parameters
    with malt.Vector(np.array(mask), fold="mean-changes", consistency=consistency, graph=graph) as v:
        for step in range(1, 4):
            v.array[0] += 1
            v.sync()
            assert v.array[1:].tolist() == mask[1:], step
        v.allreduce()
        assert v.array == pytest.approx([3, *mask[1:]])


@pytest.mark.parametrize("graph", ["all", "butterfly", "shards"])
def test_several_arrays_change_as_one(r: int, n: int, graph: str) -> None:
    arrays = [np.zeros(3, np.float32), np.ones((2, 2))]
    with malt.Vector(arrays, fold="sum-changes", consistency="ssp:0", graph=graph) as v:
        v.arrays[0][:] += 1
        v.arrays[1][:] += r
        v.sync()
        assert v.arrays[0].tolist() == [n] * 3
        assert set(v.arrays[1].ravel().tolist()) == {1 + n * (n - 1) // 2}
        malt.barrier()


@pytest.mark.parametrize("graph", ["all", "butterfly", "shards", "shards:1"])
def test_what_no_sync_has_sent_has_the_weight_of_the_last_call(r: int, n: int, graph: str) -> None:
    half = 0.5 if n > 1 else 1  # alone a rank keeps its values
    with malt.Vector(3, fold="sum-changes", consistency="ssp:2", graph=graph) as v:
        for _ in range(3 + 7 * r):  # of rank 0 no call is due
            v.array += 2
            v.sync(every=4, weight=0.5)
        v.allreduce()
        so_far = half * sum(2 * (3 + 7 * i) for i in range(n))
        assert v.array.tolist() == [so_far] * 3
        v.sync(every=99, weight=9)
        for _ in range(9):  # the last ones without Python
            v.array += 2
            v.sync(weight=0.5)
        v.array += 2
        v.allreduce()
        assert v.array.tolist() == [so_far + half * 20 * n] * 3


def test_mean_changes_takes_the_step_of_mean(n: int) -> None:
    with malt.Vector(np.zeros(4), fold="mean-changes", consistency="ssp:0") as v:
        for step in range(1, 4):
            v.array += 1
            v.sync()
            malt.barrier()
            np.testing.assert_allclose(v.array, step, rtol=0, atol=1e-12)
        assert (v.fold, n) == ("mean-changes", malt.size())


def test_g1_alone_changes_leave_the_array_as_it_is(n: int) -> None:
    if n > 1:
        pytest.skip("for one rank")
    values = np.random.default_rng(0).standard_normal(1001).astype(np.float32)
    with malt.Vector(np.zeros(1001, np.float32), fold="mean-changes", consistency="async") as v:
        for _ in range(3):
            v.array += values
            before = v.array.copy()
            v.sync(weight=0.3)
            v.allreduce()
            assert v.array.tobytes() == before.tobytes()


@pytest.mark.parametrize("way", [{}, {"graph": "butterfly"}, {"graph": "shards", "sparse": "model"}])
def test_slack_of_one_sync(n: int, way: Any) -> None:
    with malt.Vector(3, fold="sum-changes", consistency="async", **way) as v:
        v.array += 1
        v.sync(slack=0)  # waits for all
        assert v.array.tolist() == [n] * 3
        assert v.age == 0
        malt.barrier()
        for wrong in (-1, 1.5, "2", 1 << 16 | 1, 1 << 64):
            with pytest.raises(ValueError, match="slack="):
                v.sync(slack=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="Leave slack= out"):
            v.sync(lambda own, _: own, slack=1)
        malt.barrier()


def test_a_rank_that_ends_first_passes_on_what_the_others_change(r: int, n: int) -> None:
    v = malt.Vector(np.zeros(n), fold="sum-changes", graph="butterfly", consistency="ssp:0")
    pair = malt.Graph([[n - 1], *[[]] * (n - 2), [0]] if n > 1 else [[]], allow_disconnected=True)
    end = malt.Vector(1, graph=pair)
    for step in range(1, 3 + 20 * (r in (0, n - 1))):
        v.array[r] += 1
        v.sync()
        for other, changes in enumerate(v.array):
            assert changes >= min(step, 2 + 20 * (other in (0, n - 1))), (step, v.array)
    if r in (0, n - 1):
        end.sync()  # a rank that goes on to the next test is not waited for
    end.close()
    sent = v.stats().edges
    assert sum(edge.sent_bytes for edge in sent) >= 8 * n * (n > 1)
    v.close()  # and a rank that is done first goes on to the end of the others


def test_what_does_not_go_with_changes(n: int) -> None:
    for options, words in [
        ({"graph": "ring"}, "Take graph=all, butterfly or shards"),
        ({"graph": "butterfly"}, "Take consistency=ssp:0"),
        ({"graph": "shards:1"}, "Take consistency=ssp:0"),
        ({"consistency": "notify-ack"}, "Take consistency=bsp"),
        ({"sparse": "model"}, "Take graph=shards with sparse=model"),
        ({"start": "own"}, "Take start=same"),
    ]:
        with pytest.raises(ValueError, match=words):
            malt.Vector(3, fold="sum-changes", **options)  # type: ignore[arg-type]
    with malt.Vector(3, fold="sum-changes") as v, malt.Vector(3) as plain:
        with pytest.raises(ValueError, match="op="):
            plain.allreduce("sum-changes")
        with pytest.raises(ValueError, match="another vector"):
            v.configure(fold="mean")
        for refused, words in [
            (lambda: v.sync(rows=[1]), "(?s)fold=sum-changes.*Leave rows= out"),
            (lambda: v.scatter([1]), "Leave rows= out"),
            (lambda: v.sync("mean"), "(?s)fold=mean of one sync.*Leave fold= out"),
            (lambda: v.sync(lambda own, _: own), "(?s)fold=<lambda> of one sync.*Leave fold= out"),
            (lambda: plain.sync("sum-changes"), "Leave fold= out"),
        ]:
            with pytest.raises(ValueError, match=words):
                refused()
        assert (v.clock, plain.clock) == (0, 0)  # nothing was sent
        v.sync("sum-changes")
        if n > 1:
            v.scatter()
            with pytest.raises(malt.UnsupportedError, match="fold=mean"):
                v.gather(lambda own, _: own)
            v.gather()
        malt.barrier()
