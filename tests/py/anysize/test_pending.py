"""Syncs that go on while the program computes, at any number of ranks."""

from __future__ import annotations

import numpy as np
import pytest

import malt


@pytest.mark.parametrize("consistency", ["bsp", "notify-ack"])
def test_a_sync_that_was_begun_is_a_sync(r: int, n: int, consistency: str) -> None:
    with malt.Vector(np.zeros(1001), consistency=consistency, fold="mean") as v:
        for step in range(5):
            v.array[:] = r + step
            exchanged = v.sync_begin()
            assert exchanged.wait() == exchanged.wait() == n - 1
            assert exchanged.done()
            np.testing.assert_allclose(v.array, step + (n - 1) / 2, rtol=1e-12)
        malt.barrier()


def test_a_weight_counts(r: int, n: int) -> None:
    with malt.Vector(2) as v:
        v.array[:] = r
        v.sync_begin(weight=r + 1).wait()
        weights = np.arange(1.0, n + 1)
        np.testing.assert_allclose(v.array, np.average(np.arange(n), weights=weights), rtol=1e-12)


def test_several_vectors_at_once_in_any_order(r: int, n: int) -> None:
    with malt.Vector(np.zeros(30_000)) as a, malt.Vector(np.zeros(30_000, np.float32), fold="sum") as b:
        for _ in range(10):
            for v in (a, b):
                v.array[:] = r
            begun = [v.sync_begin() for v in ((a, b) if r % 2 else (b, a))]
            assert [one.wait() for one in begun] == [n - 1] * 2
            assert set(a.array) == {(n - 1) / 2}
            assert set(b.array) == {n * (n - 1) / 2}


def test_a_collective_call_waits_for_it(r: int, n: int) -> None:
    """Else the others would go on without a rank that is in such a call."""
    with malt.Vector(np.zeros(200_000)) as v:
        for call in (malt.barrier, lambda: malt.allgather(r), lambda: malt.allreduce(1.0), v.allreduce):
            v.array[:] = r
            exchanged = v.sync_begin()
            call()
            assert exchanged.done()
            assert exchanged.wait() == n - 1
            assert set(v.array) == {(n - 1) / 2}


def test_what_cannot_be_begun() -> None:
    with malt.Vector(3, fold=lambda own, _: own) as v, pytest.raises(malt.UnsupportedError, match="sync_begin of"):
        v.sync_begin()
    with malt.Vector(3, sparse="model") as v, pytest.raises(malt.UnsupportedError, match="sync_begin of"):
        v.sync_begin()
    v = malt.Vector(3)
    for wrong in ({"weight": "1"}, {"timeout": "1"}):
        with pytest.raises(TypeError):
            v.sync_begin(**wrong)  # type: ignore[arg-type]
    v.close()
    with pytest.raises(malt.StaleError):
        v.sync_begin()


def test_an_error_comes_out_of_the_wait(r: int, n: int) -> None:
    with malt.Vector(3, uneven="error") as v:
        malt.barrier()
        if r:
            exchanged = v.sync_begin(timeout=0)
            for _ in range(2):
                with pytest.raises((malt.TimeoutError, malt.StateError)):
                    exchanged.wait()
        malt.barrier()
    assert n >= 1
