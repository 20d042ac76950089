"""What bad input gets: an error that names the value, what was expected and what to do.

All of it is refused before another rank hears of it, so one rank is enough here.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import malt
from malt._job import world
from malt._vectors import folds


def read_only() -> np.ndarray:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("data", "options", "error", "words"),
    [
        ("abc", {}, TypeError, "a length, a shape, a numpy array or a list"),
        (None, {}, TypeError, "data is None"),
        (True, {}, TypeError, "data is True"),
        (2.5, {}, TypeError, "np.asarray"),
        (-1, {}, ValueError, "no negative numbers"),
        ((2, -3), {}, ValueError, "no negative numbers"),
        ([1.5, 2.5], {}, TypeError, "np.asarray"),
        ([], {}, ValueError, "at least one array"),
        ({"w": np.zeros(2)}, {}, TypeError, r"data is a dict.*\n.*list\(data\.values\(\)\)"),
        ([np.zeros(2), 3], {}, TypeError, r"data\[1\] is 3 \(int\)"),
        (np.zeros(3, np.int64), {}, TypeError, "dtype int64.*dtype=np.float32 to convert"),
        (np.zeros(3, np.float16), {}, TypeError, "expected float32 or float64"),
        (np.zeros(3, ">f4"), {}, TypeError, ">f4"),
        (np.array([object()]), {}, TypeError, "dtype object"),
        (np.array([object()]), {"dtype": np.float32}, TypeError, "does not convert to float32"),
        (np.array(["1"]), {"dtype": np.float32}, TypeError, "does not convert"),
        (np.zeros(2, np.complex64), {"dtype": np.float32}, TypeError, "does not convert"),
        (np.zeros((4, 4))[:, ::2], {}, ValueError, r"strides \(32, 16\) is not C-contiguous.*ascontiguousarray"),
        (np.zeros((4, 3)).T, {}, ValueError, "not C-contiguous"),
        (read_only(), {}, ValueError, r"read-only.*\.copy\(\)"),
        ([np.zeros(3), read_only()], {}, ValueError, r"data\[1\] is read-only"),
        (np.ma.masked_array([1.0], [True]), {}, TypeError, "masked"),
        (3, {"dtype": np.int32}, TypeError, "expected float32 or float64"),
        (3, {"dtype": "floaty"}, TypeError, "floaty"),
        (3, {"graph": "haltn"}, ValueError, 'haltn.*"halton"'),
        (3, {"graph": 7}, TypeError, "graph=7"),
        (3, {"graph": "all fold=sum"}, ValueError, "without blanks"),
        (3, {"graph": ""}, ValueError, "graph=''"),
        (3, {"consistency": "ssp:-1"}, ValueError, r"ssp:-1.*whole number"),
        (3, {"consistency": "asinc"}, ValueError, "async"),
        (3, {"consistency": 2}, TypeError, "consistency=2"),
        (3, {"fold": "maen"}, ValueError, "maen.*Did you mean 'mean'"),
        (3, {"fold": 3}, TypeError, "fold=3"),
        (3, {"fold": None}, TypeError, "fold=None"),
        (3, {"start": "sane"}, ValueError, "Did you mean 'same'"),
        (3, {"name": "a b"}, ValueError, "a b"),
        (3, {"name": "a\0b"}, ValueError, "zero byte"),
        (3, {"sparse": True}, ValueError, "'model'.*has not changed.*'gradient'.*zero"),
        (3, {"sparse": 1}, TypeError, "model, gradient"),
        ((), {"sparse": "model"}, ValueError, "an array without axes"),
        ([np.zeros(3), np.zeros(4)], {"sparse": "model"}, ValueError, "2 arrays.*a vector of each"),
        (3, {"sparse": "modle"}, ValueError, "Did you mean 'model'"),
        (2**70, {}, ValueError, f"^malt: data={2**70}\nthat is more than any memory holds$"),
        (np.zeros(3, np.float16), {}, TypeError, "dtype float16"),
        (np.zeros(3, ">f8"), {}, TypeError, "dtype >f8"),
        (sparse.csr_matrix((1, 3)), {}, TypeError, r"Pass data\.toarray\(\)"),
        (2**60, {}, (malt.OutOfMemoryError, ValueError), ""),
    ],
)
def test_making_a_vector(data: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        malt.Vector(data, **options)


def test_a_misspelt_argument_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="consistancy"):
        malt.Vector(3, consistancy="bsp")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ([[0]], "0"),  # to itself
        ([[1], []], r"(?s)^malt: .*not strongly connected.*accept it with allow_disconnected"),
        ([[1], [0, 2]], "2"),  # out of range
        ([[1, 1], [0]], "1"),  # repeated
        ([[-1], [0]], "-1"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "convert_node_labels_to_integers"),
        ([["x"]], "a list of receivers per rank"),
        (malt.Graph("ring", 5), "is for 5 ranks\nthe job has 1"),
    ],
)
def test_graphs(graph: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        malt.Vector(3, graph=graph)


@pytest.fixture(name="v")
def _vector() -> Iterator[malt.Vector]:
    with malt.Vector(np.zeros((2, 3), np.float32), consistency="async") as v:
        yield v


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda v: v.scatter(to=[0]), ValueError, "0"),
        (lambda v: v.scatter(to=[5]), ValueError, "5 is not a rank"),
        (lambda v: v.scatter(to=2**40), TypeError, "a list of ranks"),
        (lambda v: v.scatter(to=[1.5]), TypeError, "a list of ranks"),
        (lambda v: v.scatter(rows=[1]), ValueError, "sent as a whole\nMake the vector with sparse='model'"),
        (lambda v: v.scatter(weight=float("nan")), ValueError, "(?i)nan"),
        (lambda v: v.scatter(weight=1e308), ValueError, r"weight=1e\+308: expected a number from 0 to 1e\+300"),
        (lambda v: v.scatter(weight=-1), ValueError, "-1"),
        (lambda v: v.scatter(weight="x"), TypeError, "weight='x'\nexpected a number"),
        (lambda v: v.scatter(weight=None), TypeError, "weight=None"),
        (lambda v: v.scatter(weight=np.ones(2)), TypeError, "weight="),
        (lambda v: v.gather("maen"), ValueError, "Did you mean 'mean'"),
        (lambda v: v.gather(3), TypeError, "fold=3"),
        (lambda v: v.sync(every=0), ValueError, "every=0"),
        (lambda v: v.sync(every=1.5), TypeError, "every=1.5"),
        (lambda v: v.sync(every=2.0), TypeError, "every=2.0"),
        (lambda v: v.sync(every=True), ValueError, "every=True"),
        (lambda v: v.sync(every=float("nan")), TypeError, "every=nan"),
        (lambda v: v.sync(every=float("inf")), TypeError, "every=inf"),
        (lambda v: v.sync(every="3"), TypeError, "every='3'\nexpected a whole number"),
        (lambda v: v.sync(every=None), TypeError, "every=None"),
        (lambda v: v.sync("maen", every=9), ValueError, "Did you mean 'mean'"),
        (lambda v: v.sync(3, every=9), TypeError, "fold=3"),
        (lambda v: v.sync(weight="x", every=9), TypeError, "weight='x'"),
        (lambda v: v.sync(rows=[1]), ValueError, "sent as a whole"),
        (lambda v: v.sync(rows=[1], every=9), ValueError, "sent as a whole"),
        (lambda v: v.sync(timeout=-1), ValueError, "timeout=-1"),
        (lambda v: v.sync(timeout=float("nan")), ValueError, "timeout=nan"),
        (lambda v: v.sync(timeout="1"), TypeError, "timeout='1'"),
        (lambda v: v.allreduce("maen"), ValueError, "Did you mean 'mean'"),
        (lambda v: v.allreduce("replace"), ValueError, "expected one of mean, sum, min, max"),
        (lambda v: v.broadcast(1), ValueError, "a rank from 0 to 0"),
        (lambda v: v.broadcast("x"), TypeError, "the number of a rank"),
        (lambda v: v.configure(consistency="bps"), ValueError, "bsp"),
        (lambda v: v.configure(fold=1), TypeError, "fold=1"),
        (
            lambda v: setattr(v, "array", np.zeros((3, 2))),
            ValueError,
            r"shape \(2, 3\)\nexpected a value of that shape, got shape \(3, 2\)",
        ),
        (lambda v: setattr(v, "array", np.zeros(3)), ValueError, "expected a value of that shape"),
        (lambda v: setattr(v, "array", "x"), TypeError, "real numbers"),
        (lambda v: setattr(v, "array", [[1], [1, 2]]), ValueError, "cannot be assigned"),
        (lambda v: setattr(v, "array", 1j), TypeError, "real numbers"),
        (lambda v: setattr(v, "flat", np.zeros(5)), ValueError, r"\(6,\)"),
        (lambda v: setattr(v, "arrays", [1, 2]), ValueError, "2 arrays are assigned"),
    ],
)
def test_using_a_vector(v: malt.Vector, call: Any, error: type[Exception], words: str) -> None:
    before = v.array.copy()
    with pytest.raises(error, match=words):
        call(v)
    np.testing.assert_array_equal(v.array, before)
    v.array += 1
    v.sync()  # and it can be used on


@pytest.mark.parametrize("options", [{"fold": "maen"}, {"fold": 3}, {"weight": "x"}, {"weight": -1}, {"rows": [1]}])
def test_a_refused_sync_has_sent_nothing(options: dict[str, Any]) -> None:
    """In bsp a scatter without its gather would make the next sync fail."""
    with malt.Vector(3, consistency="bsp") as v:
        with pytest.raises((ValueError, TypeError, malt.UnsupportedError)):
            v.sync(**options)
        v.array += 1
        v.sync()
        assert v.clock == 1


def test_every_built_in_fold_is_one_of_the_librarys() -> None:
    for fold in folds.BUILT_IN:
        with malt.Vector(3, fold=fold) as v:
            v.array += 1
            v.sync()
            v.sync(fold)
            assert v.fold == fold


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v.scatter(),
        lambda v: v.gather(),
        lambda v: v.gather(lambda own, updates: own),
        lambda v: v.sync(),
        lambda v: v.allreduce(),
        lambda v: v.broadcast(),
        lambda v: v.configure(fold="sum"),
        lambda v: v.clock,
        lambda v: v.senders,
        lambda v: v.receivers,
        lambda v: v.stats(),
    ],
)
def test_using_a_closed_vector_is_stale(call: Any) -> None:
    v = malt.Vector(3, name="gone")
    v.close()
    v.close()  # twice is fine
    with pytest.raises(malt.StaleError, match="vector 'gone' has been closed"):
        call(v)


def test_using_a_closed_segment_is_stale() -> None:
    s = malt.Segment(8)
    s.close()
    for call in (s.scatter, s.updates, s.stats, lambda: s.clock):
        with pytest.raises(malt.StaleError, match="has been closed"):
            call()


@pytest.mark.parametrize(
    ("nbytes", "error"), [(-1, ValueError), (2.5, TypeError), ("8", TypeError), (2**63, ValueError)]
)
def test_making_a_segment(nbytes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="nbytes="):
        malt.Segment(nbytes)


def test_sending_more_than_a_segment_has() -> None:
    with malt.Segment(8, consistency="async") as s:
        with pytest.raises(ValueError, match="n=9\nexpected 0 to 8 bytes"):
            s.scatter(9)
        with pytest.raises(ValueError, match="n=-1"):
            s.scatter(-1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: malt.allreduce(1, "avg"), ValueError, "op='avg'\nexpected one of mean, sum, min, max"),
        (lambda: malt.allreduce(1, None), TypeError, "op=None"),
        (lambda: malt.allreduce("x"), TypeError, "np.asarray"),
        (lambda: malt.allreduce([1, 2]), TypeError, "expected a number or an array"),
        (lambda: malt.allreduce({"a": 1}), TypeError, r"a dict\n.*\nTry \{key: malt\.allreduce\(x\)"),
        (lambda: malt.allreduce(np.array(["x"])), TypeError, "expected numbers"),
        (lambda: malt.broadcast(1, root=1), ValueError, "root=1\nexpected a rank from 0 to 0"),
        (lambda: malt.broadcast(1, root=-1), ValueError, "root=-1"),
        (lambda: malt.broadcast(1, root=0.5), TypeError, "root=0.5"),
        (lambda: malt.broadcast(object()), TypeError, "None, numbers"),
        (lambda: malt.allgather({1: {2}}), TypeError, "builtins.set"),
        (lambda: malt.barrier(timeout=-1), ValueError, "timeout=-1"),
        (lambda: malt.barrier(timeout=True), TypeError, "timeout=True"),
        (lambda: malt.init(rank=0), malt.StateError, "already is rank 0 of 1"),
    ],
)
def test_calls_of_the_job(call: Any, error: type[Exception], words: str) -> None:
    malt.init()
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([0, 3], ValueError, "(?s)row 3 of .*rows 0 to 2"),
        ([-1], ValueError, "row -1 of"),
        (np.array([2**40]), ValueError, "row 1099511627776"),
        (np.array([7], np.uint8), ValueError, "row 7"),
        ([0.5], TypeError, "(?s)dtype float64.*whole numbers"),
        ("x", TypeError, "whole numbers"),
        ([[0], [1, 2]], ValueError, "cannot be read"),
        ([True, False], ValueError, r"(?s)mask of shape \(2,\).*expected \(3,\)"),
        (sparse.csr_matrix((3, 4)), ValueError, r"(?s)shape \(3, 4\).*Transpose it"),
    ],
)
def test_rows(rows: Any, error: type[Exception], words: str) -> None:
    with malt.Vector((3, 4), sparse="model") as v:
        for call in (v.scatter, lambda rows: v.sync(rows=rows, every=5)):
            with pytest.raises(error, match=words):
                call(rows)
        assert v.clock == 0


@pytest.mark.parametrize("make", [lambda: malt.Vector(3, name="w"), lambda: malt.Segment(3, name="w")])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_vectors_and_segments_are_neither_copied_nor_pickled(make: Any, copied: Any) -> None:
    with (
        make() as one,
        pytest.raises(
            TypeError, match=r'"?w"?.* cannot be copied or pickled\n.*\nCopy or save (v\.array|bytes\(s\.buffer)'
        ),
    ):
        copied(one)


def test_a_sum_that_wraps_around_is_an_error() -> None:
    half = np.array([2**62, 1])
    assert world._combine([half, half - 1], "sum").tolist() == [2**63 - 1, 1]
    for values in ([half, half], [half.astype(np.uint64) * 2] * 2):
        with pytest.raises(OverflowError, match=r"the sum does not fit into u?int64\n.*\n.*float64"):
            world._combine(values, "sum")
