"""What ids= and wants= accept, and refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import malt


def test_ids_are_any_numbers_of_64_bits() -> None:
    for ids in ([0, 2**64 - 1], [1, 2**63], (3, 1), range(2), np.arange(4, dtype=np.int8)[::2], np.uint64([7, 8])):
        with malt.Vector(np.array([1.0, 2.0]), ids=ids, wants=ids, fold="sum") as v:
            v.sync()
            assert v.wanted.tolist() == [1, 2]
            assert not v.missing.any()


def test_what_is_advised_for_a_mask_and_for_hashes_works() -> None:
    mask, hashes = [True, False, True], np.array([-1, 5])
    with malt.Vector(2, ids=np.flatnonzero(mask), wants=hashes.view(np.uint64)) as v:
        v.sync()
        assert v.missing.all()


def test_no_rows() -> None:
    with malt.Vector((0, 3), ids=[], wants=[]) as v:
        v.sync()
        assert v.wanted.shape == (0, 3)
        assert v.missing.shape == (0,)
    with malt.Vector((0, 3), ids=[]) as v:
        v.sync()
        assert v.wanted.shape == (0, 3)


REFUSED: dict[str, tuple[type[Exception], str, Callable[[malt.Vector], object]]] = {
    "floats": (TypeError, "(?s)has 1.5 at index 1.*integers.*Number", lambda _: malt.Vector(3, ids=[2.0, 1.5, 2.5])),
    "whole floats": (TypeError, "(?s)ids= has dtype float64.*np.uint64", lambda _: malt.Vector(2, ids=[1.0, 2.0])),
    "no number": (TypeError, "wants= has nan at index 0", lambda v: v.configure(wants=[np.nan, 1])),
    "a mask": (TypeError, "(?s)ids= has dtype bool.*flatnonzero", lambda _: malt.Vector(2, ids=np.ones(2, bool))),
    "a list": (TypeError, r"wants=numpy.flatnonzero", lambda _: malt.Vector(2, ids=[1, 0], wants=[True, False])),
    "below 0": (ValueError, "ids= has -3 at index 1", lambda _: malt.Vector(3, ids=[1, -3, -2])),
    "also later": (ValueError, "wants= has -1 at index 0", lambda v: v.configure(wants=np.int8([-1]))),
    "words": (TypeError, r"(?s)wants= has 'a' at index 0.*hash\(\)", lambda _: malt.Vector(1, ids=[1], wants=["a"])),
    "too large": (TypeError, "(?s)18446744073709551616 at.*0 to 2.*64 - 1", lambda _: malt.Vector(1, ids=[2**64])),
    "start": (ValueError, "(?s)start='same' with ids=.*Leave start", lambda _: malt.Vector(1, ids=[1], start="same")),
    "two axes": (ValueError, r"ids= has shape \(1, 1\)", lambda _: malt.Vector(1, ids=[[1]])),
    "ragged": (ValueError, "ids= cannot be read", lambda _: malt.Vector(1, ids=[[1], [1, 2]])),
    "too few": (ValueError, "2 ids for 3 rows", lambda _: malt.Vector((3, 4), ids=[1, 2])),
    "two arrays": (ValueError, "ids= with 2 arrays", lambda _: malt.Vector([np.zeros(2), np.zeros(2)], ids=[1, 2])),
    "no axes": (ValueError, "ids= and an array without axes", lambda _: malt.Vector(np.array(1.0), ids=[1])),
    "only wants": (ValueError, "wants= without ids=", lambda _: malt.Vector(2, wants=[1, 2])),
    "a function": (ValueError, "a function as fold=, <lambda>", lambda _: malt.Vector(1, ids=[1], fold=lambda o, u: o)),
    "graph": (ValueError, "graph=ring does not go with ids=", lambda _: malt.Vector(1, ids=[1], graph="ring")),
    "async": (ValueError, "consistency=async does not", lambda _: malt.Vector(1, ids=[1], consistency="async")),
    "sparse": (ValueError, "sparse=model does not go", lambda _: malt.Vector(1, ids=[1], sparse="model")),
    "replace": (ValueError, "fold=replace does not go", lambda _: malt.Vector(1, ids=[1], fold="replace")),
    "weight": (ValueError, "weight=2 does not go with ids=", lambda v: v.sync(weight=2)),
    "rows": (ValueError, "(?s)rows= of v.*Leave rows= out", lambda v: v.sync(rows=[0])),
    "fold": (ValueError, "(?s)fold=max of one sync.*Leave fold= out", lambda v: v.sync("max")),
    "slack": (ValueError, "slack=1 does not go with ids=", lambda v: v.sync(slack=1)),
    "scatter": (malt.UnsupportedError, "has no scatter", lambda v: v.scatter()),
    "gather": (malt.UnsupportedError, "has no gather", lambda v: v.gather()),
    "own gather": (malt.UnsupportedError, r"Call sync\(\)", lambda v: v.gather(lambda own, _: own)),
    "allreduce": (malt.UnsupportedError, "other rows on each rank", lambda v: v.allreduce()),
    "broadcast": (malt.UnsupportedError, "other rows on each rank", lambda v: v.broadcast()),
    "distance": (malt.UnsupportedError, "other rows on each rank", lambda v: v.distance()),
    "configure": (malt.UnsupportedError, "cannot be configured", lambda v: v.configure(fold="max")),
    "both": (ValueError, "ids= or wants= with graph=", lambda v: v.configure(ids=[1], graph="all")),
    "without ids": (ValueError, "has no ids", lambda _: malt.Vector(1).configure(wants=[1])),
    "wanted": (ValueError, "has no ids", lambda _: malt.Vector(1).wanted),
    "missing": (ValueError, "has no ids", lambda _: malt.Vector(1).missing),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    kind, words, call = REFUSED[what]
    with malt.Vector(2, ids=[1, 2], name="v") as v, pytest.raises(kind, match=words) as caught:
        call(v)
    assert str(caught.value).startswith("malt: ")
