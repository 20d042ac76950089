"""Vectors over every graph, consistency and fold.

Values are whole numbers in floats, so that every result compares bit for bit
with a naive computation of it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import malt

GRAPHS = ["all", "ring", "chord", "halton", "star", "one-peer"]
LOCKSTEP = ["bsp", "notify-ack"]  # folds exactly one update of each in-neighbour
LOOSE = ["async", "ssp:0", "ssp:2", "notify-ack:3"]


def graphs(n: int) -> list[str]:
    more = [f"random:{min(2, n - 1)}"] if n > 1 else []
    return GRAPHS + more + (["hypercube"] if n & (n - 1) == 0 else [])


def value(rank: int, clock: int) -> np.ndarray:
    return np.arange(5, dtype=np.float32) + 100 * rank + 10000 * clock


NAIVE = {
    "mean": lambda own, received: np.mean([own, *received], axis=0, dtype=np.float64),
    "mean-received": lambda own, received: np.mean(received, axis=0, dtype=np.float64) if received else own,
    "sum": lambda own, received: np.sum([own, *received], axis=0),
    "min": lambda own, received: np.min([own, *received], axis=0),
    "max": lambda own, received: np.max([own, *received], axis=0),
    "replace": lambda own, received: received[0] if received else own,  # equal clocks: the lowest rank
}


@pytest.mark.parametrize("fold", NAIVE)
@pytest.mark.parametrize("consistency", LOCKSTEP)
def test_lock_step_folds_exactly_this_steps_updates(r: int, n: int, consistency: str, fold: str) -> None:
    for spec in graphs(n):
        with malt.Vector(5, dtype=np.float32, graph=spec, consistency=consistency, fold=fold) as v:
            for clock in range(1, 5):
                v.array = value(r, clock)
                senders = sorted(malt.Graph(spec, n).senders(r, clock))
                folded = v.sync()
                expected = NAIVE[fold](value(r, clock), [value(s, clock) for s in senders])
                np.testing.assert_allclose(v.array, expected.astype(np.float32), rtol=1e-6, err_msg=f"{spec} {clock}")
                assert folded == len(senders), (spec, clock)
            assert v.clock == 4
            malt.barrier()


def test_bsp_on_all_gives_the_same_bits_on_every_rank(r: int, n: int) -> None:
    with malt.Vector(np.random.default_rng(r).standard_normal(1001), start="own") as v:
        for _ in range(5):
            v.array *= np.random.default_rng(r + 7).standard_normal(1001)
            v.sync()
            assert len(set(malt.allgather(v.array.tobytes()))) == 1


@pytest.mark.parametrize("fold", [None, "replace", lambda own, updates: own])
@pytest.mark.parametrize("consistency", ["async", "ssp:2"])
def test_a_gather_waits_for_the_updates_of_all(r: int, n: int, consistency: str, fold: malt.typing.Op) -> None:
    with malt.Vector(3, consistency=consistency) as v:
        assert v.gather(fold, wait=0) == 0
        malt.barrier()
        v.array += r
        v.scatter()
        left = n - 1
        while left:
            left -= v.gather(fold, wait=300)
        malt.barrier()
        if n == 1:
            assert v.gather(wait=300) == 0  # no rank can send


def test_what_waits_a_gather_refuses(n: int) -> None:
    with malt.Vector(3, consistency="async") as v:
        for wrong, error in ((-1, ValueError), (np.nan, ValueError), (True, TypeError), ("1", TypeError)):
            for fold in (None, "sum"):
                with pytest.raises(error, match=f"wait={wrong!r}"):
                    v.gather(fold, wait=wrong)  # type: ignore[arg-type]
    for consistency in LOCKSTEP:
        with malt.Vector(3, consistency=consistency) as v, malt.Segment(3, consistency=consistency) as s:
            for call in (v.gather, s.updates):
                with pytest.raises(malt.UnsupportedError, match=f"wait= does not go with consistency={consistency}"):
                    call(wait=1)
    with malt.Vector(3, ids=[1, 2, 3], fold="sum") as v, pytest.raises(malt.UnsupportedError, match="Leave it out"):
        v.gather(wait=1)
    if n > 1:
        with (
            malt.Vector(n, graph="butterfly", fold="sum-changes", consistency="async") as v,
            pytest.raises(malt.UnsupportedError, match="Leave it out"),
        ):
            v.gather(wait=1)


def test_a_message_is_waited_for(r: int, n: int) -> None:
    with malt.Segment(3, consistency="async") as s:
        s.buffer[0] = r
        s.scatter()
        heard: list[int] = []
        while len(heard) < n - 1:
            heard += [message.data[0] for message in s.updates(wait=300)]
        assert sorted(heard) == [other for other in range(n) if other != r]
        malt.barrier()


@pytest.mark.parametrize("consistency", [*LOCKSTEP, *LOOSE])
def test_g2_no_update_is_folded_twice_and_none_is_torn(r: int, n: int, consistency: str) -> None:
    """Rank i sends constant vectors of its clock; a fold of our own looks at each."""
    seen: set[tuple[int, int]] = set()

    def look(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        assert updates
        for u in updates:
            assert (u.rank, u.clock) not in seen
            seen.add((u.rank, u.clock))
            assert set(u.array.tolist()) == {u.rank * 1000 + u.clock}
            assert u.age == v.clock_now - u.clock  # type: ignore[attr-defined]
        return own

    class Counted(malt.Vector):
        clock_now = 0

    with Counted(4096, consistency=consistency, graph="chord", fold=look) as v:
        for clock in range(1, 41):
            v.array = r * 1000 + clock
            v.clock_now = clock
            v.sync()
        malt.barrier()
        for sender in v.senders:
            clocks = sorted(clock for rank, clock in seen if rank == sender)
            if consistency == "bsp" or consistency.startswith("notify-ack"):
                assert clocks == list(range(1, 41))


@pytest.mark.parametrize("slack", [0, 1, 3])
def test_g7_no_folded_update_is_older_than_the_slack(r: int, n: int, slack: int) -> None:
    ages: list[int] = []

    def look(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        ages.extend(u.age for u in updates)
        return own

    with malt.Vector(10, consistency=f"ssp:{slack}", graph="ring", fold=look) as v:
        for _ in range(60 if r % 2 else 40):  # join rule: the shorter ones wait in the barrier
            v.array += 1
            v.sync()
        malt.barrier()
    assert all(age <= slack for age in ages)


@pytest.mark.parametrize("consistency", [*LOCKSTEP, *LOOSE])
def test_join_rule_uneven_numbers_of_syncs(r: int, n: int, consistency: str) -> None:
    with malt.Vector(3, consistency=consistency) as v:
        for _ in range(3 + 2 * r):
            v.array += 1
            v.sync()
        v.allreduce()
        assert len(set(malt.allgather(v.array.tobytes()))) == 1
        clocks = malt.allgather(v.clock)
        assert clocks == [3 + 2 * (n - 1)] * n  # levelled
        v.array += 1
        v.sync()


def test_allreduce_and_broadcast_make_replicas_equal(r: int, n: int) -> None:
    for op, expected in (("mean", (n + 1) / 2), ("sum", n * (n + 1) / 2), ("min", 1), ("max", n)):
        with malt.Vector(np.full(7, r + 1.0), start="own", graph="ring", consistency="async") as v:
            v.allreduce(op)
            assert v.array.tolist() == [expected] * 7
            v.array = r
            v.broadcast(n - 1)
            assert v.array.tolist() == [n - 1] * 7


def test_start(r: int, n: int) -> None:
    with malt.Vector(np.full(3, r, np.float32)) as v:
        assert v.array.tolist() == [0, 0, 0]
    with malt.Vector(np.full(3, r, np.float32), start="own") as v:
        assert v.array.tolist() == [r] * 3


def test_mean_is_weighted_by_what_the_scatters_say(r: int, n: int) -> None:
    with malt.Vector(np.full(2, 10.0 * r), start="own") as v:
        v.sync(weight=r + 1)
        weights = np.arange(1, n + 1)
        np.testing.assert_allclose(v.array, np.sum(weights * 10 * np.arange(n)) / weights.sum())


def test_to_reaches_only_those_named(r: int, n: int) -> None:
    with malt.Vector(np.full(3, float(r)), start="own", consistency="async", fold="sum") as v:
        nxt, previous = (r + 1) % n, (r - 1) % n
        sent = v.scatter(to=[nxt] if n > 1 else [])
        assert sent == (24 if n > 1 else 0)
        while n > 1 and not v.gather():  # async: it is on its way
            pass
        assert v.array.tolist() == [r + previous if n > 1 else r] * 3
        assert {e.rank: e.sent_messages for e in v.stats().edges if e.sent_messages} == ({nxt: 1} if n > 1 else {})
        malt.barrier()
        assert v.gather() == 0


def test_several_arrays_travel_together(r: int, n: int) -> None:
    data = [np.full((2, 3), r, np.float32), np.full(4, 2.0 * r), np.zeros(0)]
    with malt.Vector(data, start="own", fold="sum") as v:
        v.sync()
        total = n * (n - 1) / 2
        assert [set(a.ravel().tolist()) for a in v.arrays] == [{total}, {2 * total}, set()]


def test_a_fold_of_several_arrays(r: int, n: int) -> None:
    def add(own: tuple[np.ndarray, ...], updates: list[malt.Update]) -> list[np.ndarray]:
        assert all(u.arrays[0].shape == (2, 3) and u.arrays[1].dtype == np.float64 for u in updates)
        return [a + sum(u.arrays[i] for u in updates) for i, a in enumerate(own)]

    data = [np.full((2, 3), r, np.float32), np.full(4, 2.0 * r)]
    with malt.Vector(data, start="own", fold=add) as v:
        v.sync()
        total = n * (n - 1) / 2
        assert [set(a.ravel().tolist()) for a in v.arrays] == [{total}, {2 * total}]


@pytest.mark.parametrize("consistency", [*LOCKSTEP, *LOOSE])
def test_a_fold_of_ones_own_gives_the_bits_of_the_built_in(r: int, n: int, consistency: str) -> None:
    def largest(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        for u in updates:
            np.maximum(own, u.array, out=own)
        return own

    random = np.random.default_rng(r)
    with (
        malt.Vector(100, consistency=consistency, fold=largest) as ours,
        malt.Vector(100, consistency=consistency, fold="max") as theirs,
    ):
        for _ in range(5):
            step = random.standard_normal(100)
            ours.array += step
            theirs.array += step
            if consistency in LOCKSTEP:
                assert ours.sync() == theirs.sync() == n - 1
                assert ours.array.tobytes() == theirs.array.tobytes()
            else:
                ours.sync()
                theirs.sync()
        malt.barrier()


def test_configure_changes_the_mode_on_all_ranks(r: int, n: int) -> None:
    with malt.Vector(np.full(2, float(r)), start="own") as v:
        v.sync()
        v.configure(graph="ring", consistency="notify-ack", fold="sum")
        assert (v.graph.spec, v.consistency, v.fold) == ("ring", "notify-ack:1", "sum")
        assert v.senders == malt.Graph("ring", n).senders(r)
        v.array = r + 50
        v.sync()
        assert v.array[0] == (r + 50 + (r - 1) % n + 50 if n > 1 else 50)
        v.configure(fold=lambda own, updates: own * 0)
        v.sync()
        assert v.array[0] == 0 or n == 1
        v.configure(consistency="async")
        v.array = 5
        v.sync()
        malt.barrier()


def test_neighbours_are_those_of_the_graph(r: int, n: int) -> None:
    for spec in graphs(n):
        with malt.Vector(1, graph=spec) as v:
            g = malt.Graph(spec, n)
            assert v.receivers == g.receivers(r, 1)
            if spec != "one-peer":
                assert sorted(v.senders) == g.senders(r)
            malt.barrier()


def test_custom_graphs(r: int, n: int) -> None:
    backwards = [[(i - 1) % n] if n > 1 else [] for i in range(n)]
    for graph in (backwards, malt.Graph(backwards)):
        with malt.Vector(np.full(2, float(r)), start="own", graph=graph, fold="sum") as v:
            v.sync()
            assert v.array[0] == (r + (r + 1) % n if n > 1 else r)
            malt.barrier()


def test_a_disconnected_graph_has_to_be_asked_for(r: int, n: int) -> None:
    silent: list[list[int]] = [[] for _ in range(n)]
    if n > 1:
        with pytest.raises(ValueError, match="not strongly connected"):
            malt.Vector(2, graph=silent)
    with malt.Vector(2, graph=malt.Graph(silent, allow_disconnected=True)) as v:
        assert v.sync() == 0


def test_statistics_count_what_went_over_each_edge(r: int, n: int) -> None:
    with malt.Vector(100, dtype=np.float32, graph="halton") as v:
        for _ in range(4):
            v.array += 1
            v.sync()
        s = v.stats()
        assert (s.scatters, s.gathers) == (4, 4)
        sent = {e.rank: e.sent_messages for e in s.edges if e.sent_messages}
        assert sent == dict.fromkeys(v.receivers, 4)
        assert {e.rank: e.folded_bytes for e in s.edges if e.folded_bytes} == dict.fromkeys(v.senders, 4 * 400)
        assert s.sent_bytes == 4 * 400 * len(v.receivers)
        assert all(e.age_mean == 0 and e.age_max == 0 for e in s.edges if e.folded_messages)
        assert len(str(s).splitlines()) == 2 + len(s.edges)
        malt.barrier()


def test_scatter_returns_the_bytes_of_all_receivers(r: int, n: int) -> None:
    with malt.Vector(100, dtype=np.float32) as v:
        assert v.scatter() == 400 * (n - 1)
        assert v.gather() == n - 1


def test_zero_length_vectors_work(r: int, n: int) -> None:
    for consistency in [*LOCKSTEP, *LOOSE]:
        with malt.Vector(0, consistency=consistency) as v:
            v.sync()
            v.allreduce()
            v.broadcast()
            assert v.flat.shape == (0,)


@pytest.mark.parametrize("consistency", LOCKSTEP)
def test_an_empty_update_is_an_update(r: int, n: int, consistency: str) -> None:
    with malt.Segment(4, consistency=consistency) as s:
        s.scatter(0)
        assert [(m.rank, m.data) for m in s.updates()] == [(i, b"") for i in range(n) if i != r]
    with malt.Vector([np.zeros(0, np.float32), np.ones(3)], consistency=consistency) as v:
        v.scatter()
        shapes: list[tuple[tuple[int, ...], ...]] = []

        def look(own: tuple[np.ndarray, ...], updates: list[malt.Update]) -> tuple[np.ndarray, ...]:
            shapes.extend(tuple(a.shape for a in u.arrays) for u in updates)
            return own

        assert v.gather(look) == n - 1
        assert shapes == [((0,), (3,))] * (n - 1)
        malt.barrier()


def test_a_vector_beyond_memory_fails_on_every_rank_and_leaves_nothing(r: int, n: int) -> None:
    with pytest.raises(malt.OutOfMemoryError, match="TiB wanted"):
        malt.Vector(2**42)
    with malt.Vector(2) as v:
        v.array += 1
        v.sync()


def test_two_vectors_do_not_mix(r: int, n: int) -> None:
    with malt.Vector(2, fold="sum", name="a") as a, malt.Vector(3, fold="sum", name="b", dtype="f4") as b:
        for k in range(3):
            a.array, b.array = 1, 10
            for v in (a, b) if k % 2 else (b, a):
                v.sync()
            assert (a.array[0], b.array[0]) == (n, 10 * n)


@pytest.mark.parametrize("consistency", [*LOCKSTEP, *LOOSE])
def test_segments_carry_opaque_bytes(r: int, n: int, consistency: str) -> None:
    with malt.Segment(64, consistency=consistency) as s:
        for clock in range(1, 4):
            text = f"{r}:{clock}:{'x' * r}".encode()
            s.buffer[: len(text)] = text
            assert s.scatter(len(text)) == len(text) * (n - 1)
            messages = s.updates()
            while len(messages) < n - 1:  # where it does not wait
                messages += s.updates()
            assert sorted(m.rank for m in messages) == [i for i in range(n) if i != r]
            for m in messages:
                assert m.data.decode() == f"{m.rank}:{m.clock}:{'x' * m.rank}"
                assert (m.clock, m.age) == (clock, 0)
            malt.barrier()
        assert s.stats().scatters == 3


def test_sync_every(r: int, n: int) -> None:
    with malt.Vector(1, fold="sum") as v:
        results = []
        for _ in range(6):
            v.array = 1
            results.append(v.sync(every=3))
        assert results == [None, None, n - 1, None, None, n - 1]
        assert v.array[0] == n


@pytest.mark.parametrize("consistency", [*LOCKSTEP, "async"])
def test_fuzzed_schedules_end_with_equal_replicas(r: int, n: int, consistency: str) -> None:
    """Ranks sync, gather and skip at random; the collective calls they share level them."""
    shared, own = np.random.default_rng(5), np.random.default_rng(100 + r)
    with malt.Vector(17, consistency=consistency, graph="halton") as v:
        for _ in range(6):
            for _ in itertools.repeat(None, int(own.integers(0, 6))):
                v.array += own.standard_normal(17)
                v.sync()
            [v.allreduce, v.broadcast][int(shared.integers(2))]()
            assert len(set(malt.allgather(v.array.tobytes()))) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distance_is_that_from_the_mean(r: int, n: int, dtype: type) -> None:
    values = [np.random.default_rng(rank).standard_normal(150_000).astype(dtype) + 3 for rank in range(n)]
    mean = np.mean(values, axis=0, dtype=np.float64)
    expected = np.sqrt(np.mean([np.sum((v - mean) ** 2) for v in values])) / np.linalg.norm(mean)
    halves = [values[r][:70_000].reshape(700, 100), values[r][70_000:]]
    with malt.Vector(halves, start="own") as v:
        assert v.distance() == pytest.approx(expected, rel=1e-5)
        np.testing.assert_array_equal(v.flat, values[r])  # nothing has changed
        assert malt.allgather(v.distance()) == [v.distance()] * n
        v.allreduce()
        assert v.distance() == 0  # to the bit
        if r == 0:
            v.flat[0] = np.nextafter(v.flat[0], dtype(np.inf))
        assert v.distance() > 0 or n == 1


def test_distance_of_special_values(r: int, n: int) -> None:
    with malt.Vector(1, start="own") as v:
        assert v.distance() == 0
        v.array[0] = np.inf
        assert n == 1 or np.isnan(v.distance())
        if n % 2 == 0:
            v.array[0] = (-1) ** r
            assert v.distance() == np.inf
