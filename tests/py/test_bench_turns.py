"""What `make bench` measures: how many calls make a turn, and what the limit's kernels do."""

from __future__ import annotations

import ctypes
import shutil
import threading
from typing import ClassVar

import numpy as np
import pytest

from bench import environments, turns
from bench.ranks.clock import skewed
from bench.rows import Row, Target
from bench.systems import System
from bench.team import TeamError
from bench.turns import Plan


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


@pytest.mark.parametrize(("late", "calls"), [(0.0, 1000), (500e-6, 57), (3000e-6, 10)])
def test_calls_with_a_late_rank_take_its_time_too(late: float, calls: int) -> None:
    row = Row("", "skew", 2, 1024, options={"late": late})
    assert turns._calls(row, "malt", Ranks(1e-6), cores=4) == (calls, 2)  # type: ignore[arg-type]


def test_a_call_begins_when_the_lateness_is_over() -> None:
    clock = iter([0.0, 5.0, 9.0, 10.0])  # until 10 the rank is late

    def call() -> None:
        assert next(clock, None) is None  # it has been for as long as that

    array = np.ones(4, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.ranks.clock.time.monotonic", lambda: next(clock, 12.0))
        assert skewed(array, call, late=10.0)(1) == [(10.0, 12.0)]
    assert list(array) == [1.0] * 4


def test_what_measures_itself_is_called_once() -> None:
    row = Row("", "stopped", 8, 4096, once=True)
    assert turns._calls(row, "malt", Ranks(1.0), cores=4) == (1, 0)  # type: ignore[arg-type]


def test_what_is_slow_is_not_warmed_up_for_long() -> None:
    assert turns._calls(Row("", "sync", 16, 64), "by hand", Ranks(2.0), cores=4) == (4, 8)  # type: ignore[arg-type]


class Started:
    """Ranks of a contender: a turn of the n-th start takes n times as long as one of the first."""

    log: ClassVar[list[str]] = []

    def __init__(self, system: System, *_: object) -> None:
        self.name = system.name
        self.log.append(self.name)
        self.start = self.log.count(self.name)
        if system.name == "never":
            raise TeamError("did not start")

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append(f"-{self.name}")

    def prepare(self, *_: object) -> None:
        pass

    drop = prepare

    def turn(self, part: str, calls: int, warm: int = 0) -> float:
        if self.name == "once" and self.start == 2:
            raise TeamError("a rank has ended")
        self.log.append(f"{self.name} {calls}")
        return self.start * 1e-3


def test_each_start_is_one_sample_and_a_contender_that_fails_in_one_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "Team", Started)
    monkeypatch.setattr(Started, "log", [])
    systems = [System(name, lambda _: []) for name in ("malt", "malt again", "peer", "once", "never")]
    asked, free = Row("", "sync", 2, 1024, Target(peer=1)), Row("", "sync", 2, 2048)
    found = turns.measure([asked, free], systems, Plan(starts=6, turns=3, seed=1), 2, lambda _: None)
    assert [result.row for result in found] == [asked, free]
    values = [start * 1e-3 for start in range(1, 7)]
    for result, names in zip(found, ({"malt", "malt again", "peer"}, {"malt", "peer"}), strict=True):
        assert result.samples == dict.fromkeys(names, values)
        assert result.turns == {name: [[value] * 3 for value in values] for name in names}
        assert result.left_out == {"once": "a rank has ended", "never": "did not start"}

    log = Started.log
    assert {name: log.count(name) for name in ("malt", "malt again", "peer", "once", "never")} == {
        "malt": 6,
        "malt again": 6,
        "peer": 6,
        "once": 2,
        "never": 1,
    }
    begins = [name for name in log if name in ("malt", "peer")]
    orders = {tuple(begins[i : i + 2]) for i in range(0, 12, 2)}
    assert orders == {("malt", "peer"), ("peer", "malt")}
    first, later = log[: log.index("-malt")], log[log.index("-malt") :]
    assert first.count("malt 1") == 2  # it is found out how many calls a turn has: for each row, once
    assert later.count("malt 1") == 0


@pytest.mark.parametrize(
    ("free", "turns_of"),
    [(10 << 20, [2]), (6 << 20, [1, 1]), (5 << 20, [])],
)
def test_where_memory_is_short_contenders_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, free: int, turns_of: list[int]
) -> None:
    monkeypatch.setattr(turns, "Team", Started)
    monkeypatch.setattr(turns, "free", lambda: free)
    monkeypatch.setattr(Started, "log", [])
    at_once: list[int] = []
    together = turns._Measured._take_turns
    monkeypatch.setattr(
        turns._Measured, "_take_turns", lambda self, some, plan: at_once.append(len(some)) or together(self, some, plan)
    )
    systems = [System(name, lambda _: []) for name in ("malt", "peer")]
    (result,) = turns.measure([Row("", "sync", 1, 1 << 20)], systems, Plan(1, 1), 2, lambda _: None)
    assert at_once == turns_of
    assert result.samples.keys() == ({"malt", "peer"} if turns_of else set())
    assert result.left_out.keys() == (set() if turns_of else {"malt", "peer"})


def test_the_order_is_that_of_the_seed() -> None:
    first, same, other = (Plan(5, 3, seed) for seed in (1, 1, 2))
    orders = [[plan.shuffled("abcdef") for _ in range(5)] for plan in (first, same, other)]
    assert orders[0] == orders[1] != orders[2]
    assert len({tuple(order) for order in orders[0]}) > 1


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


@pytest.mark.parametrize("senders", [[1, 2], [2], []])
@pytest.mark.parametrize("count", COUNTS)
def test_the_limit_of_a_sync_writes_its_array_copies_it_and_folds_the_slots(
    limit: ctypes.CDLL, count: int, senders: list[int]
) -> None:
    arrays = np.random.default_rng(count).integers(0, 99, (4, count)).astype(np.float32)  # the slots, and its array
    slots = arrays.copy()
    own, slot = (ctypes.c_void_p(arrays[row].ctypes.data) for row in (3, 0))
    theirs = _addresses(arrays[senders[0] :] if senders else arrays)
    limit.exchange(own, slot, theirs, *map(_n, (len(senders), count)), ctypes.c_float(5), _n(2))
    once = (slots[3] + 5 + slots[senders].sum(axis=0)) / (len(senders) + 1)
    np.testing.assert_allclose(arrays[0], once + 5, rtol=1e-6)
    np.testing.assert_allclose(arrays[3], (once + 5 + slots[senders].sum(axis=0)) / (len(senders) + 1), rtol=1e-6)
    np.testing.assert_array_equal(arrays[1:3], slots[1:3])


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
