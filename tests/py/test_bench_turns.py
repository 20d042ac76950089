"""What `make bench` measures: how many calls make a turn, and what the limit's kernels do."""

from __future__ import annotations

import ctypes
import shutil
import threading

import numpy as np
import pytest

from bench import environments, turns
from bench.rows import Row


class Ranks:
    """Ranks of which a call takes so long, and the first calls of each turn longer: they begin late."""

    def __init__(self, seconds: float, late: float = 0.0) -> None:
        self.seconds, self.late = seconds, late

    def turn(self, part: str, calls: int, warm: int = 0) -> float:
        return self.seconds + (0 if warm else self.late / calls)


@pytest.mark.parametrize(("ranks", "each"), [(4, 0.03), (16, 0.12), (32, 0.24)])
@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 5e-3])
def test_a_turn_gives_each_rank_its_time_and_late_ranks_do_not_count(ranks: int, each: float, seconds: float) -> None:
    row = Row("", "sync", ranks, 1 << 20)
    calls, warm = turns._calls(row, "malt", Ranks(seconds, late=0.5), cores=4)  # type: ignore[arg-type]
    assert each / 2 <= calls * seconds <= 10 * each
    assert warm == min(2 * calls, ranks)


def test_what_measures_itself_is_called_once() -> None:
    row = Row("", "stopped", 8, 4096, once=True)
    assert turns._calls(row, "malt", Ranks(1.0), cores=4) == (1, 0)  # type: ignore[arg-type]


def test_what_is_slow_is_not_warmed_up_for_long() -> None:
    assert turns._calls(Row("", "sync", 16, 64), "by hand", Ranks(2.0), cores=4) == (4, 8)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def limit() -> ctypes.CDLL:
    if shutil.which("cc") is None:
        pytest.skip("the limit's kernels need a C compiler")
    library = ctypes.CDLL(str(environments.limit_library()))
    library.gather.restype = ctypes.c_double
    return library


COUNTS = [1, 15, 16, 63, 64, 65, 1000, 4096 + 7]


@pytest.mark.parametrize("write", [0, 1])
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("count", COUNTS)
def test_the_limit_of_an_average_leaves_it_in_every_array(
    limit: ctypes.CDLL, ranks: int, count: int, write: int
) -> None:
    """And where each rank writes its array before, it does: a compiler leaves out what changes nothing."""
    arrays = np.random.default_rng(count).integers(0, 99, (ranks, count)).astype(np.float32) * ranks
    expected = arrays.mean(axis=0) + 3 * write

    def average(at: ctypes.c_void_p, all_: ctypes.Array[ctypes.c_void_p], rank: ctypes.c_int64) -> None:
        limit.average(at, all_, rank, *map(_n, (ranks, count, write)), ctypes.c_float(3), _n(1))

    _together(limit, ranks, average, arrays)
    np.testing.assert_allclose(arrays, np.broadcast_to(expected, arrays.shape), rtol=1e-6)


@pytest.mark.parametrize("count", COUNTS)
def test_the_limit_of_a_gather_folds_what_others_have_just_written(limit: ctypes.CDLL, count: int) -> None:
    arrays, spare = np.zeros((3, count), np.float32), np.full((3, count), 6, np.float32)
    theirs = _addresses(spare)
    _together(limit, 3, lambda at, all_, rank: limit.gather(at, all_, theirs, rank, *map(_n, (3, count, 1))), arrays)
    np.testing.assert_array_equal(arrays, np.repeat([[4], [6], [6]], count, axis=1))


@pytest.mark.parametrize("past", [0, 1])
@pytest.mark.parametrize("count", COUNTS)
def test_the_limit_of_a_scatter_copies_all_of_it(limit: ctypes.CDLL, past: int, count: int) -> None:
    source = np.arange(count, dtype=np.float32)
    room = np.zeros(count + 16, np.float32)
    to = room[-room.ctypes.data % 64 // 4 :][:count]  # past the caches whole lines are written
    limit.copy(ctypes.c_void_p(to.ctypes.data), ctypes.c_void_p(source.ctypes.data), *map(_n, (count, past, 2)))
    np.testing.assert_array_equal(to, source)


def _n(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def _addresses(arrays: np.ndarray) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _together(limit, ranks, call, arrays) -> None:
    """Call it as each rank, in a thread: they wait for each other, and ctypes lets go of the interpreter."""
    room = np.zeros(64 * (ranks + 1), np.uint8)
    at = ctypes.c_void_p(room.ctypes.data + -room.ctypes.data % 64)
    threads = [threading.Thread(target=call, args=(at, _addresses(arrays), _n(rank))) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
