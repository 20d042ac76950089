"""``malt.deal``: the items of ``malt.shard`` while all live, and what ranks that die leave of theirs."""

from __future__ import annotations

import itertools
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jobs import Job, run

import malt
from malt._data.hands import Hand, Hands, Mark
from malt._data.tally import WORDS, Tally
from malt._job import world

CONTINUE = {"MALT_ON_DEATH": "continue"}

X, Y = np.arange(22.0).reshape(11, 2), list("abcdefghijk")


def kinds() -> list[Any]:
    from scipy import sparse

    return [X, Y, tuple(Y), range(11), sparse.csr_matrix(X), sparse.coo_matrix(X)]


def same(a: Any, b: Any) -> bool:
    return (a != b).nnz == 0 if hasattr(a, "nnz") else bool(np.all(a == b))


# ------------------------------------------------------------------ one rank


@pytest.mark.parametrize("order", ["stride", "block", "shuffle"])
@pytest.mark.parametrize("x", kinds(), ids=lambda x: type(x).__name__)
def test_items_are_those_of_the_shard(x: Any, order: Any) -> None:
    dealt = list(malt.deal(x, epochs=2, order=order))
    passes = [malt.shard(x, order=order, **({"seed": e} if order == "shuffle" else {})) for e in range(2)]
    cut = [item for part in passes for item in part]
    assert len(dealt) == len(cut) == 22
    assert all(map(same, dealt, cut))
    both = list(malt.deal(x, Y, order=order, seed=5 if order == "shuffle" else None))
    assert [b for _, b in both] == list(malt.shard(Y, order=order, seed=5 if order == "shuffle" else None))


def test_rows_of_tables() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert [(list(row), y) for row, y in malt.deal(frame, pandas.Series([5, 6]))] == [([1, 3], 5), ([2, 4], 6)]
    arrow = pytest.importorskip("pyarrow")
    assert [row["a"].to_pylist() for row in malt.deal(arrow.table({"a": [1, 2]}))] == [[1], [2]]


def test_where_it_is() -> None:
    deal = malt.deal(X, Y, epochs=2)
    assert (deal.epoch, deal.position, len(deal), deal.epochs) == (0, 0, 22, 2)
    assert [(deal.epoch, deal.position) for _ in deal] == list(itertools.product(range(2), range(1, 12)))
    assert (deal.epoch, deal.position) == (1, 11)
    # Another loop makes further passes, with further orders.
    assert [deal.epoch for _ in deal] == [2] * 11 + [3] * 11
    deal = malt.deal(range(11), order="shuffle", seed=2**32 - 1)
    assert list(deal) == malt.shard(range(11), order="shuffle", seed=2**32 - 1)
    assert list(deal) == malt.shard(range(11), order="shuffle", seed=0)
    assert repr(deal) == "<deal of 11 items, epochs=1, order='shuffle', seed=4294967295: epoch=1, position=11>"


def test_a_loop_that_is_left() -> None:
    deal = malt.deal(range(5), epochs=2)
    for i in deal:
        if i == 3:
            break
    assert (deal.epoch, deal.position) == (0, 4)
    assert list(deal) == [*range(5), *range(5)]
    assert deal.epoch == 2
    with pytest.raises(ZeroDivisionError):
        [i // 0 for i in deal]
    assert (deal.epoch, deal.position) == (3, 1)
    first = iter(deal)
    next(first)
    next(iter(deal))
    with pytest.raises(malt.StateError, match="another loop over this deal"):
        list(first)


def test_nothing_to_deal() -> None:
    assert list(malt.deal(range(5), epochs=0)) == []
    assert list(malt.deal([], epochs=3, order="shuffle", even="pad")) == []
    assert len(malt.deal(range(5), epochs=0)) == 0


def test_data_that_fails() -> None:
    class Bad:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i: int) -> int:
            return 10 // (2 - i)

    deal = malt.deal(Bad())  # type: ignore[call-overload]
    with pytest.raises(ZeroDivisionError):
        list(deal)
    assert deal.position == 2, "the item that could not be made does not count"


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: malt.deal(), TypeError, "deal() without data"),
        (lambda: malt.deal(iter(Y)), TypeError, "whose items come one by one"),
        (lambda: malt.deal(Y, iter(Y)), TypeError, "Make it a list first, or use malt.shard."),
        (lambda: malt.deal((X, X[:, 0])), TypeError, "Did you mean malt.deal(X, y)?"),
        (lambda: malt.deal(X, Y[:3]), ValueError, "deal of data with different lengths"),
        (lambda: malt.deal({1, 2}), TypeError, "its order may differ between ranks"),
        (lambda: malt.deal(Y, epochs=-1), ValueError, "epochs=-1\nexpected 0 to"),
        (lambda: malt.deal(Y, epochs=1.5), TypeError, "epochs=1.5\nexpected a whole number of passes"),
        (lambda: malt.deal(Y, epoch=2), TypeError, "Did you mean epochs?"),
        (lambda: malt.deal(Y, seed=1), ValueError, "only order='shuffle' has a seed"),
        (lambda: malt.deal(Y, order="shufle"), ValueError, "Did you mean 'shuffle'?"),
        (lambda: malt.deal(Y, even="padd"), ValueError, "Did you mean 'pad'?"),
    ],
)
def test_refused(call: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as e:
        call()
    assert words in str(e.value)


def test_an_item_costs_no_python() -> None:
    """Nothing of MALT's runs between two items: position is worked out when it is asked for."""
    deal, calls = malt.deal(X, Y, epochs=3), 0

    def count(frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    loop = iter(deal)
    next(loop)
    sys.setprofile(count)
    try:
        for _ in range(10):
            next(loop)
    finally:
        sys.setprofile(None)
    assert calls == 0


# --------------------------------------------------------- what is dealt again


@pytest.mark.parametrize("even", [None, "pad", "drop"])
def test_g11_hands_cover_all(even: Any) -> None:
    """Any number of deaths at any moments, by the arithmetic alone: see test_deal_deaths.py for processes."""
    for seed in range(100):
        cover(seed, even)


def cover(seed: int, even: Any) -> None:
    draw = random.Random(seed)
    n, size = draw.choice([0, 1, 5, 30, 100]), draw.choice([2, 3, 5])
    order = draw.choice(["stride", "block", "shuffle"])
    hands = Hands(n, order, 3 if order == "shuffle" else None, even, list(range(size)))
    alive, kept, twice = list(range(size)), np.zeros(n, int), 0
    syncs = {r: draw.random() < 0.8 for r in alive}
    mine: dict[int, list[int]] = {r: [] for r in alive}  # got and not synced
    marks: dict[int, Mark] = {}
    passes = 4
    for epoch in range(passes):
        hand: Hand | None = hands.everything(epoch)
        while hand is not None:
            died = []
            for r in list(alive):
                items = hand.numbers(r).tolist()
                assert len(items) == hand.count(r)
                dies = len(alive) > 1 and draw.random() < 0.2
                for k, item in enumerate(items[: draw.randint(0, len(items))] if dies else items):
                    mine[r].append(item)
                    if syncs[r] and draw.random() < 0.2:
                        np.add.at(kept, mine[r], 1)
                        mine[r], marks[r] = [], (hand.number, k + 1)
                if dies:
                    died.append(r)
                    alive.remove(r)
                    twice += len(mine[r])
            hands.ranks = list(alive)
            left = hands.left(died, marks)
            hand = hands.rest(left) if len(left) else None
        for r in alive:
            if r not in marks:  # it never syncs: what it has got of a pass that is over is its own
                np.add.at(kept, mine[r], 1)
                mine[r] = []
        hands.end({r: marks.get(r) for r in alive})
    for r in alive:
        np.add.at(kept, mine[r], 1)
    if even is None:
        assert (kept == passes).all()
    elif even == "pad":
        assert (kept >= passes).all()


def test_parts_of_what_is_left_are_disjoint_and_as_even_as_asked() -> None:
    hands = Hands(100, "block", None, None, [0, 2, 5, 7])
    rest = hands.rest(np.array([50, 7, 99, 3, 4, 8, 15]))
    assert [rest.numbers(r).tolist() for r in hands.ranks] == [[50, 4], [7, 8], [99, 15], [3]]
    for even in "pad", "drop":
        rest = Hands(100, "block", None, even, [0, 2, 5, 7]).rest(np.array([50, 7, 99, 3, 4]))
        assert [rest.numbers(r).tolist() for r in hands.ranks] == [[50, 4], [7, 50], [99, 7], [3, 99]]


def test_g11_the_last_word_of_a_dead_rank_is_read_after_its_death_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 2 of 3 publishes and dies between two calls: only what is read after it was missing in one is final."""
    tally = Tally("unused")
    marks = iter([(2, 3), (2, 5)])
    seen: list[list[list[int]]] = []
    alive = [0, 1, 2]

    class Left:
        def updates(self) -> list[Any]:
            return [malt.Message(WORDS.pack(*next(marks)), 2, 1, 0)]

    def gathered(call: str, value: Any, timeout: None, where: str) -> list[Any]:
        seen.append(value[2])
        alive[:] = [0, 1]
        return [value, [1, [], []]]

    tally.close()
    monkeypatch.setattr(tally, "_segment", Left())
    monkeypatch.setattr(world, "alive", lambda: alive)
    monkeypatch.setattr(world, "allgather_in", gathered)
    assert tally.agree([0, 1, 2], "") == ({0: None, 1: None}, {2: (2, 5)})
    assert seen == [[], [[2, 2, 5]]]


# ------------------------------------------------------------------ more ranks

ALIVE = """
    for length in 0, 1, 2, 11, 12:
        x = np.arange(length)
        for even in None, "pad", "drop":
            for order in "stride", "block", "shuffle":
                seed = {"seed": 7} if order == "shuffle" else {}
                deal = malt.deal(x, epochs=2, order=order, even=even, **seed)
                got = [(deal.epoch, deal.position, i) for i in deal]
                want = []
                for e in range(2):
                    part = malt.shard(x, order=order, even=even, **({"seed": 7 + e} if seed else {}))
                    want += [(e, k + 1, i) for k, i in enumerate(part)]
                assert got == want and len(got) == len(deal), (got, want)

    def train(items, each, end=lambda: None):
        v = malt.Vector(3)
        for e in range(2):
            for a in items(e):
                v.array[:] += 0.1 * np.sin(a + v.array + r)
                v.sync(every=each)
            end()
        v.allreduce()
        return v.array.tobytes()

    # The same bits as with a shard, unless parts differ in length: then, as with a barrier after each pass.
    for length, each in (12, 1), (12, 3), (30, 4), (11, 1), (31, 4):
        x = np.linspace(0, 1, length)
        deal = malt.deal(x)
        end = malt.barrier if length % n else lambda: None
        assert train(lambda e: deal, each) == train(lambda e: malt.shard(x), each, end)

    inner = [(a, b) for a in malt.deal(range(n * 2)) for b in malt.deal(range(n))]
    assert inner == [(r, r), (r + n, r)]
    both = list(zip(malt.deal(range(n * 2)), malt.deal(range(1, n * 2 + 1))))
    assert both == [(r, r + 1), (r + n, r + n + 1)]

    left = malt.deal(range(n * 3), epochs=2)
    for i in left:
        if left.position == 2:
            break
    assert list(left) == [r, r + n, r + 2 * n] * 2 and left.epoch == 2

    # A rank that is at the end of its pass is not waited for.
    v = malt.Vector(1)
    for i in malt.deal(range(2 * n + 1)):
        v.array[:] += 1
        v.sync()

    for wrong in lambda: malt.deal(range(10 + r)), lambda: malt.deal(range(10), epochs=1 + r):
        try:
            wrong()
        except malt.MismatchError as e:
            assert "malt.deal" in str(e) and " items" in str(e), e
        else:
            raise AssertionError
    try:
        for i in malt.deal(range(10)):
            if r == 0:
                break
        malt.barrier()
    except (malt.MismatchError, malt.StateError) as e:   # or what another rank made of it
        assert "malt.deal" in str(e), e
    else:
        raise AssertionError
    print("through")
"""


@pytest.mark.parametrize("on_death", ["stop", "continue"])
def test_all_live(on_death: str) -> None:
    assert run(3, ALIVE, env={"MALT_ON_DEATH": on_death}) == ["through"] * 3


DYING = """
    import ast
    dies = ast.literal_eval(os.environ["DIES"])          # rank: pass and position at which it is killed
    size, passes, how, mode = os.environ["HOW"].split()
    v = malt.Vector(3, consistency=mode)
    more = malt.Vector(3, consistency=mode)
    deal = malt.deal(range(int(size)), epochs=int(passes))
    for i in deal:
        print(deal.epoch, i, flush=True)
        if dies.get(r) == (deal.epoch, deal.position):
            os.kill(os.getpid(), signal.SIGKILL)
        v.array[:] += 1
        if how == "sync2":
            v.sync(every=2)
        elif how == "pair" and deal.position % 2 == 0:
            v.scatter()
            more.sync() if mode == "bsp" else None       # any vector counts
            v.gather()
        elif how == "scatter":
            v.scatter() if deal.position % 2 else None   # an item before the gather
            v.gather() if not deal.position % 2 else None
        elif how == "allreduce" and deal.position % 2 == 0:
            v.allreduce()
    print("end", *malt.alive())
"""


def dying(ranks: int, dies: dict[int, tuple[int, int]], how: str) -> list[list[tuple[int, int]]]:
    """Return the passes and items that each rank got."""
    with Job(ranks, DYING, env={**CONTINUE, "DIES": repr(dies), "HOW": how}) as job:
        job.finish()
        got = []
        for rank, process in enumerate(job.ranks):
            *lines, last = process.out.text.splitlines() or [""]
            if rank in dies:
                assert process.process.returncode == -signal.SIGKILL, process.err.text
                lines.append(last)
            else:
                assert process.process.returncode == 0, process.err.text
                assert last == " ".join(map(str, ["end", *sorted(set(range(ranks)) - set(dies))]))
            got.append([(int(e), int(i)) for e, i in map(str.split, lines)])
    return got


@pytest.mark.parametrize(
    ("how", "synced"),
    [
        ("sync2 bsp", 4),
        ("sync2 async", 4),
        ("pair bsp", 4),
        ("pair notify-ack", 4),
        ("scatter async", 3),
        ("allreduce bsp", 4),
        ("never bsp", 0),
    ],
)
def test_g11_what_was_not_synced_is_dealt_again(how: str, synced: int) -> None:
    first, second = dying(2, {1: (0, 6)}, f"20 1 {how}")
    assert [i for _, i in second] == [1, 3, 5, 7, 9, 11]
    assert [i for _, i in first] == [*range(0, 20, 2), *range(1, 20, 2)[synced:]]


def test_g11_a_remainder_of_a_remainder() -> None:
    """Rank 1 dies in its pass, and rank 2 in what that leaves."""
    got = dying(3, {1: (0, 3), 2: (0, 12)}, "30 2 sync2 bsp")
    own = [list(range(r, 30, 3)) for r in range(3)]
    left = own[1][2:]  # 7, 10, … 28: eight
    assert [i for e, i in got[2] if e == 0] == own[2] + left[1::2][:2]
    # Of the ten and two items that rank 2 got, it had synced ten.
    assert [i for e, i in got[0]] == own[0] + left[::2] + left[1::2] + list(range(30))
    assert [e for e, i in got[0]] == [0] * 18 + [1] * 30


def test_g11_what_was_not_synced_stays_ones_own_across_passes() -> None:
    """Rank 1 has synced 4 of its 5 items when its first pass ends, and dies at once in the second."""
    got = dying(2, {1: (1, 1)}, "10 3 sync2 async")
    assert [i for e, i in got[0] if e == 0] == [0, 2, 4, 6, 8]
    assert [i for e, i in got[0] if e == 1] == [0, 2, 4, 6, 8, 9, 1, 3, 5, 7, 9]
    assert [i for e, i in got[0] if e == 2] == list(range(10))
    # One that never syncs has only its last pass dealt again.
    got = dying(2, {1: (1, 1)}, "10 3 never bsp")
    assert [i for e, i in got[0] if e == 1] == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


@pytest.mark.parametrize(("mode", "again"), [("bsp", ["8"]), ("async", [])])
def test_g11_a_rank_that_waits_at_the_end_of_its_pass_is_dealt_to(mode: str, again: list[str]) -> None:
    """Rank 0 is there first. In lock-step it misses the last sync of rank 1, so that does not count."""
    script = f"""
        v = malt.Vector(1, consistency="{mode}")
        for i in malt.deal(range(9), order="block"):
            print(i, flush=True)
            v.array[:] += 1
            v.sync()
            if r == 1 and i == 8:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    with Job(2, script, env=CONTINUE) as job:
        first, second = job.finish()
        assert first.process.returncode == 0, first.err.text
        assert second.out.text.split() == ["4", "5", "6", "7", "8"]
        assert first.out.text.split() == ["0", "1", "2", "3", *again]


def test_a_loop_that_was_left_is_not_dealt_again() -> None:
    script = """
        deal = malt.deal(range(10))
        for i in deal:
            if deal.position == 2 + r:
                break
        for i in deal:
            print(deal.epoch, i, flush=True)
            if r == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    with Job(2, script, env=CONTINUE) as job:
        first, second = job.finish()
        assert second.out.text == "1 1\n"
        assert first.out.text.split() == [word for i in [0, 2, 4, 6, 8, 1, 3, 5, 7, 9] for word in ("1", str(i))]


def test_few_ranks_left_end_the_loop() -> None:
    script = """
        for i in malt.deal(range(4)):
            if r == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    with Job(2, script, env={**CONTINUE, "MALT_MIN_RANKS": "2"}) as job:
        job.finish()
        assert job.ranks[0].process.returncode == 1
        assert "PeerError" in job.ranks[0].err.text
