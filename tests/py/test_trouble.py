"""Warnings about the values of vectors."""

from __future__ import annotations

import jobs
import pytest

import malt
from malt import _lib
from malt._lib.loading import ffi, lib
from malt._vectors.statistics import RDMA


@pytest.mark.parametrize("options", ["", ", consistency='ssp:0'", ", consistency='notify-ack', graph='ring'"])
def test_a_nan_is_named_with_its_rank(options: str) -> None:
    jobs.run(
        3,
        f"""
        import warnings
        v = malt.Vector(np.zeros(2000, np.float32), name="model"{options})
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", malt.NotFiniteWarning)
            for clock in range(3):
                v.array += 1
                if clock == 2 and r == 1:
                    v.array[1999] = np.inf
                v.sync()
                malt.barrier()
        seen = [w for w in seen if w.category is malt.NotFiniteWarning]
        assert len(seen) <= 1
        for w in seen:
            assert str(w.message).splitlines()[0] == f"malt: model: NaN or infinity has come from rank 1", w
            assert w.filename == __file__, w
        assert sum(malt.allgather(len(seen))) >= 1
        """,
    )


def test_it_can_be_an_exception() -> None:
    jobs.run(
        2,
        """
        import warnings
        warnings.simplefilter("error", malt.NotFiniteWarning)
        v = malt.Vector(3, consistency="ssp:0")
        v.array[r] = np.nan if r == 1 else 1.0
        try:
            v.sync()
        except malt.NotFiniteWarning as e:
            assert np.isnan(v.array[1]), v.array      # folded all the same
        else:
            raise AssertionError("no exception")
        """,
    )


def test_the_words_about_a_recording_that_is_full() -> None:
    why = ffi.new("char[]", b"its file has 64 MB")
    with pytest.warns(RuntimeWarning, match="^malt: model: rank 3 records no more\nits file has 64 MB\n"):
        _lib.waiting.warn_of_trouble(ffi.new("malt_trouble *", {"kind": 3, "rank": 3, "why": why}), "model")


def test_the_words_about_memory_that_cannot_be_locked() -> None:
    trouble = ffi.new("malt_trouble *", {"kind": 5, "rank": 3, "limit": 64 << 10, "need": 23 << 20})
    with pytest.warns(RuntimeWarning) as said:
        _lib.waiting.warn_of_trouble(trouble, "model")
    assert str(said[0].message).splitlines() == [
        "malt: RDMA is off: rank 3 may lock too little memory, and updates go by TCP",
        "RLIMIT_MEMLOCK is 64 KiB, and RDMA needs 23552 KiB",
        "ulimit -l unlimited; in a container, --ulimit memlock=-1",
    ]


def test_the_words_about_rdma_that_has_failed() -> None:
    why = ffi.new("char[]", b"a write does not end, though the peer answers")
    with pytest.warns(RuntimeWarning) as said:
        _lib.waiting.warn_of_trouble(ffi.new("malt_trouble *", {"kind": 6, "rank": 3, "why": why}), "model")
    assert str(said[0].message).splitlines() == [
        "malt: RDMA with rank 3 has failed, and updates go by TCP from now on",
        "a write does not end, though the peer answers",
        "`malt doctor` has the card write to itself",
    ]


def test_why_there_is_no_rdma_is_numbered_as_in_c() -> None:
    for number, word in enumerate(RDMA[1:], 1):
        name = word.removesuffix(" yet").replace(" ", "_").upper()
        assert getattr(lib, f"MALT_RDMA_{name}") == number


def test_the_words_about_a_rank_that_falls_behind() -> None:
    trouble = ffi.new("malt_trouble *", {"kind": 2, "rank": 3, "own": 400, "theirs": 100, "seconds": 31.2})
    with pytest.warns(malt.DriftWarning) as said:
        _lib.waiting.warn_of_trouble(trouble, "model")
    assert said[0].message.same == "malt: model: rank 3 falls behind, and async waits for no rank"  # type: ignore[union-attr]
    assert str(said[0].message).splitlines() == [
        "malt: model: rank 3 falls behind, and async waits for no rank",
        "it made 100 syncs in 31 s, and this rank 400",
        'Use consistency="ssp:8", or give that rank less work.',
        "More: malt explain slow",
    ]
