"""Folds of the user's own: what they get, what they may do, and what happens when they fail."""

from __future__ import annotations

import textwrap

import jobs
import pytest

VECTOR = """
v = malt.Vector(np.full(4, 10.0 * (r + 1)), start="own", consistency="notify-ack", name="w")
def failing(error, do=lambda own, updates: own):
    v.scatter()
    before = v.array.copy()
    try:
        v.gather(do)
    except error as e:
        said = str(e)
    else:
        raise AssertionError("no error")
    assert v.array.tobytes() == before.tobytes(), v.array
    assert v.gather("sum") == n - 1                 # the updates come again
    assert v.array.tolist() == [30.0] * 4
    return said
"""


def two(script: str) -> None:
    jobs.run(2, VECTOR + textwrap.dedent(script) + "\nmalt.barrier()\nv.close()\n")


def test_a_fold_with_other_parameters() -> None:
    two("""
        said = failing(TypeError, lambda own: own)
        assert said.startswith("malt: fold <lambda> cannot be called with (own, updates)\\n"), said
        assert said.endswith("1 positional argument but 2 were given\\nGive it these two parameters."), said
    """)


def test_a_type_error_of_the_fold_stays_as_it_is() -> None:
    two("assert failing(TypeError, lambda own, updates: len(3)) == \"object of type 'int' has no len()\"")


def test_a_fold_that_raises_leaves_the_value_and_the_updates() -> None:
    two("""
        class Mine(Exception): pass
        def bad(own, updates):
            own[:] = -1
            raise Mine("of my own")
        assert failing(Mine, bad) == "of my own"
    """)


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (
            "None",
            "TypeError",
            "returned None\nReturn the new value",
        ),
        ("own[:3]", "ValueError", "returned shape (3,)\nexpected (4,)"),
        ("own.reshape(2, 2)", "ValueError", "returned shape (2, 2)"),
        ("0", "ValueError", "returned shape ()"),
        ("np.array(list('abcd'))", "TypeError", "expected real numbers"),
        ("own * 1j", "TypeError", "complex"),
        ("[own, own]", "ValueError", "returned shape (2, 4)"),
    ],
)
def test_a_fold_that_returns_something_else(result: str, error: str, words: str) -> None:
    two(f"""
        def bad(own, updates):
            own += 1
            return {result}
        said = failing({error}, bad)
        assert {words!r} in said and "fold bad" in said, said
    """)


def test_a_fold_cannot_call_its_own_vector() -> None:
    two("""
        calls = [
            lambda: v.scatter(), lambda: v.gather(), lambda: v.gather(lambda own, updates: own), lambda: v.sync(),
            lambda: v.allreduce(), lambda: v.broadcast(), lambda: v.configure(fold="sum"), lambda: v.close(),
        ]
        refused = []
        def bad(own, updates):
            for call in calls:
                try:
                    call()
                except malt.StateError as e:
                    refused.append(str(e))
            raise KeyError
        failing(KeyError, bad)
        assert len(refused) == len(calls)
        assert all("vector 'w' is being folded" in e for e in refused), refused
    """)


def test_a_fold_may_use_other_vectors_and_look_at_its_own() -> None:
    two("""
        other = malt.Vector(2, consistency="async")
        def fold(own, updates):
            other.scatter()
            assert v.array is own
            return own + updates[0].array
        v.scatter()
        assert v.gather(fold) == 1
        assert v.array.tolist() == [30.0] * 4
        malt.barrier()
        other.close()
    """)


@pytest.mark.parametrize(
    "result", ["np.add(own, updates[0].array, out=own)", "own + updates[0].array", "(own + updates[0].array).tolist()"]
)
def test_in_place_or_anew(result: str) -> None:
    two(f"""
        v.scatter()
        assert v.gather(lambda own, updates: {result}) == 1
        assert v.array.tolist() == [30.0] * 4
    """)


def test_results_that_lie_over_own_or_over_an_update() -> None:
    two("""
        v.array = np.arange(4) + 10 * r
        v.scatter()
        v.gather(lambda own, updates: own[::-1])
        assert v.array.tolist() == [3 + 10 * r, 2 + 10 * r, 1 + 10 * r, 0 + 10 * r]
        v.array = np.arange(4) + 10 * r
        v.scatter()
        v.gather(lambda own, updates: updates[0].array)
        assert v.array.tolist() == [10 * (1 - r) + i for i in range(4)]
        pair = malt.Vector([np.zeros(3), np.ones(3)], consistency="notify-ack")
        pair.scatter()
        pair.gather(lambda own, updates: (own[1], own[0]))
        assert [a.tolist() for a in pair.arrays] == [[1] * 3, [0] * 3]
        malt.barrier()
        pair.close()
    """)


def test_updates_are_read_only_and_described() -> None:
    two("""
        def fold(own, updates):
            u = updates[0]
            assert len(updates) == 1 and u.array is u.arrays[0]
            assert (u.rank, u.clock, u.age, u.weight) == (1 - r, 1, 0, 2.5), u
            assert repr(u) == f"<malt update of rank {1 - r}: clock 1, age 0, weight 2.5>"
            assert type(u.array) is np.ndarray and not u.array.flags.writeable
            try:
                u.array[0] = 1
            except ValueError:
                return own
        v.scatter(weight=2.5)
        v.gather(fold)
    """)


def test_a_fold_is_never_called_without_updates() -> None:
    two("""
        a = malt.Vector(3, consistency="async", fold=lambda own, updates: 1 / 0)
        assert a.gather() == 0
        malt.barrier()
        a.close()
    """)


def test_arrays_kept_after_the_fold_are_warned_of_and_never_crash() -> None:
    two("""
        import gc, warnings
        warnings.simplefilter("always")
        kept = []
        def keeping(own, updates):
            kept.append(updates[0].array[1:3])
            return own
        with warnings.catch_warnings(record=True) as caught:
            for _ in range(3):
                v.array += 1
                v.sync(keeping)
        assert [w.category for w in caught] == [RuntimeWarning], caught
        assert "keeping keeps arrays of its updates" in str(caught[0].message) and caught[0].filename == __file__
        try:
            v.configure(fold="sum")
        except malt.StateError as e:
            assert "Keep copies" in str(e)
        malt.barrier()
        v.close()
        malt.barrier()                    # the sender has let go of it, too
        del v
        gc.collect()
        assert all(np.isfinite(k).all() for k in kept)
        del kept, keeping
        gc.collect()
        v = malt.Vector(1)
    """)


def test_copies_may_be_kept() -> None:
    two("""
        import warnings
        warnings.simplefilter("error")
        kept = []
        def keeping(own, updates):
            kept.extend(u.array.copy() for u in updates)
            loop = [updates]
            loop.append(loop)             # a cycle, which only the collector frees
            return own
        v.array += 1
        v.sync(keeping)
        v.array += 1
        v.sync(keeping)
        assert [k[0] for k in kept] == [10.0 * (2 - r) + 1, 10.0 * (2 - r) + 2]
    """)


NATIVE = """
import ctypes
class Update(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_double)), ("bytes", ctypes.c_uint64), ("rank", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("clock", ctypes.c_uint64), ("age", ctypes.c_int64),
                ("weight", ctypes.c_double)]
KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_double), ctypes.c_uint64, ctypes.POINTER(Update),
                        ctypes.c_uint32, ctypes.c_void_p)
class Native:                                       # what numba.cfunc makes has an address, too
    def __init__(self, function):
        self.callback = KIND(function)
        self.address = ctypes.cast(self.callback, ctypes.c_void_p).value
def add(own, bytes, updates, n, user):
    for u in range(n):
        for i in range(bytes // 8):
            own[i] += updates[u].data[i]
    return 0
"""


def test_a_native_fold() -> None:
    two(
        NATIVE
        + textwrap.dedent("""
        fold = Native(add)
        v.scatter()
        assert v.gather(fold) == 1
        assert v.array.tolist() == [30.0] * 4
        v.configure(fold=fold)
        v.array = r
        assert v.sync() == 1
        assert v.array.tolist() == [1.0] * 4
    """)
    )


def test_a_native_fold_that_fails() -> None:
    two(
        NATIVE
        + textwrap.dedent("""
        v.scatter()
        try:
            v.gather(Native(lambda *_: 7))
        except malt.StateError as e:
            assert "7" in str(e), e
        assert v.gather("sum") == 1
        assert v.array.tolist() == [30.0] * 4
    """)
    )


def test_a_numba_cfunc() -> None:
    pytest.importorskip("numba", reason="numba is optional")
    two("""
        import numba
        from numba import types
        kind = types.int32(types.CPointer(types.float64), types.uint64, types.voidptr, types.uint32, types.voidptr)
        @numba.cfunc(kind)
        def ones(own, bytes, updates, n, user):
            for i in range(bytes // 8):
                own[i] = n
            return 0
        v.scatter()
        assert v.gather(ones) == 1
        assert v.array.tolist() == [1.0] * 4
    """)


def test_ctrl_c_in_a_fold_leaves_the_value() -> None:
    two("""
        def interrupted(own, updates):
            own[:] = -1
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**6):
                pass
        failing(KeyboardInterrupt, interrupted)
    """)


def test_ctrl_c_at_any_moment_leaves_the_vector_usable() -> None:
    """A timer stands for the user; where it strikes differs from run to run."""
    two("""
        a = malt.Vector(np.zeros(50), consistency="async", name="a")
        struck = 0
        def add(own, updates):
            return own + sum(u.weight for u in updates)
        calls = [lambda: a.scatter(), lambda: a.gather(add), lambda: a.sync(add), lambda: a.sync(), lambda: a.stats()]
        random = np.random.default_rng(r)
        armed = False
        def strike(*_):  # on a busy machine the signal of one round may come in the next
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, strike)
        for k in range(2000):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-4))
                for call in calls:
                    call()
                armed = False
            except KeyboardInterrupt:
                struck += 1
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        assert struck > 100, struck
        a.array = 1
        a.sync()
        malt.barrier()
        a.close()
    """)
