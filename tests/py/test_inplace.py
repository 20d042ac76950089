"""Lock-step averages on ``all``, which ranks make in each other's arrays, from Python.

They equal numpy bit for bit, and keep doing so next to forks, threads, Ctrl-C, stopped and killed
ranks, timeouts, and ranks that have fewer steps.
"""

from __future__ import annotations

import signal

import jobs
import pytest
from launching import Stopwatch, soon
from test_process import FORK

# What a fold gives: operands in the order of ranks, in their own type; float64 where they weigh differently.
REFERENCE = """
pools = [np.random.default_rng(rank).normal(size=101000) for rank in range(n)]

def values(rank, step, length, dtype):
    return pools[rank][7 * step : 7 * step + length].astype(dtype)

def reference(op, operands, weights=None):
    if weights is not None and len(set(weights)) > 1:
        total = sum(w * x.astype("f8") for w, x in zip(weights, operands))
        return (total / sum(weights)).astype(operands[0].dtype)
    pair = {"min": np.minimum, "max": np.maximum}.get(op, np.add)
    result = operands[0].copy()
    for x in operands[1:]:
        result = pair(result, x)
    return result / result.dtype.type(len(operands)) if op == "mean" else result

def same(a, b):
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes(), (a, b)
"""


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_a_sync_is_numpys_fold_in_the_order_of_ranks(n: int) -> None:
    jobs.run(
        n,
        REFERENCE
        + """
LISTS = [[(0, "f4")], [(1, "f8")], [(15, "f4")], [(16, "f8")], [(17, "f4")], [(100003, "f4")], [(100003, "f8")],
         [(3, "f4"), (17, "f8"), (0, "f4"), (1000, "f4"), (1, "f8")]]
step = 0
for shapes in LISTS:
    v = malt.Vector([np.zeros(length, dtype) for length, dtype in shapes])
    for op in ("mean", "sum", "min", "max"):
        v.configure(fold=op)
        for weights in (None, [1 + k % 3 for k in range(n)], [k % 2 for k in range(n)]):
            step += 1
            for a, (length, dtype) in zip(v.arrays, shapes):
                a[...] = values(r, step, length, dtype)
            folded = v.sync() if weights is None else v.sync(weight=weights[r])
            assert folded == n - 1
            taken = range(n)
            if op == "mean" and weights is not None and any(weights):
                taken = [k for k in range(n) if weights[k]]
            elif op == "mean" and weights is not None:
                taken = [r]                            # where nobody weighs anything all keep their values
            for a, (length, dtype) in zip(v.arrays, shapes):
                shares = [weights[k] for k in taken] if op == "mean" and weights is not None else None
                same(a, reference(op, [values(k, step, length, dtype) for k in taken], shares))
    v.close()
""",
    )


def test_forked_children_have_memory_of_their_own_and_disturb_nothing() -> None:
    said = jobs.run(
        2,
        FORK
        + """
v = malt.Vector(np.zeros(5000), start="own")
for step in range(20):
    v.array[:] = 2 * step + r
    seen = []
    if step % 4 == 0:
        seen = [forked(v.sync)[:18], forked(lambda: print(float(v.array.sum())))]
        assert seen == ["StateError True ma", str(5000.0 * (2 * step + r))], seen
    if step == 8:
        def write():
            v.array[7] = 100 + r
        forked(write)
        assert v.array[7] == 2 * step + r          # the child's memory is a copy
    v.sync()
    mean = np.full(5000, 2 * step + 0.5)
    assert (v.array == mean).all()
pid = os.fork()
if pid == 0:
    sys.exit()                                     # through all that runs when an interpreter ends
assert os.waitpid(pid, 0)[1] == 0
v.array[:] = r
v.sync()
assert (v.array == 0.5).all()
print("through")
""",
    )
    assert said == ["through"] * 2


def test_threads_on_one_vector_are_served_or_refused() -> None:
    jobs.run(
        2,
        """
        import threading
        v = malt.Vector(np.full(3000, 1.0 + r), start="own", fold="sum")
        todo, lock = iter(range(100)), threading.Lock()
        def work():
            while True:
                with lock:
                    if next(todo, None) is None:
                        return
                while True:
                    try:
                        v.sync()
                        break
                    except malt.StateError as e:
                        assert "one call at a time" in str(e), e
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert v.clock == 100
        assert (v.array == 3 * 2.0**99).all()      # each sync doubles: none is lost, none is made twice
        """,
    )


def test_a_sync_that_was_interrupted_goes_on_with_a_gather() -> None:
    with jobs.Job(
        3,
        """
        v = malt.Vector(np.zeros(5000), start="own")
        v.array[:] = r
        if r:
            sys.stdin.readline()
            v.sync()
        else:
            try:
                print("waiting")
                v.sync()
            except KeyboardInterrupt:
                print("interrupted")
            try:
                v.gather()
            except malt.StateError:  # the interrupt came before the sync had begun
                v.sync()
        assert (v.array == 1).all()
        for step in range(5):
            v.array[:] = r + step
            v.sync()
            assert (v.array == 1 + step).all()
        """,
    ) as job:
        job.ranks[0].out.wait_for("waiting")
        with soon():
            job.ranks[0].signal(signal.SIGINT)
            job.ranks[0].out.wait_for("interrupted")
        for rank in job.ranks[1:]:
            rank.say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0] * 3, [rank.err.text for rank in job.ranks]


def test_a_rank_killed_amid_syncs_is_named_within_a_second() -> None:
    with jobs.Job(
        4,
        """
        v = malt.Vector(np.zeros(1 << 20, "f4"))
        try:
            while True:
                v.sync()
                if v.clock == 10:
                    print("syncing")
        except malt.PeerError as e:
            print("dead", e.rank)
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("syncing")
        with Stopwatch() as watch:
            job.ranks[2].signal(signal.SIGKILL)
            said = [job.ranks[n].out.wait_for(r"dead (.*)\n")[1] for n in (0, 1, 3)]
        assert said == ["2"] * 3
        assert watch.seconds < 1


def test_a_stopped_rank_is_named_at_the_timeout_and_counts_when_it_goes_on() -> None:
    with jobs.Job(
        3,
        """
        v = malt.Vector(np.zeros(5000), start="own")
        for step in range(6):
            v.array[:] = r + 10 * step
            if step == 3 and r == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            try:
                v.sync(timeout=0.3 if step == 3 and r != 1 else None)
            except malt.TimeoutError as e:
                print(e)
                try:
                    v.sync()
                except malt.StateError as e:
                    assert "gather() first" in str(e), e
                v.gather()
            assert (v.array == 1 + 10 * step).all(), (step, v.array)
        """,
    ) as job:
        for rank in (job.ranks[0], job.ranks[2]):
            rank.out.wait_for(r"\.sync timed out after 0.3 s .*\nwaited for rank 1 ")
        job.ranks[1].signal(signal.SIGCONT)
        assert [rank.process.returncode for rank in job.finish()] == [0] * 3, [rank.err.text for rank in job.ranks]


@pytest.mark.parametrize("end", ["sys.exit()", "v.allreduce('sum')"])
def test_ranks_with_fewer_steps_are_left_out_of_the_means_that_follow(end: str) -> None:
    jobs.run(
        4,
        REFERENCE
        + f"""
STEPS = [5, 2, 5, 3]
v = malt.Vector(np.zeros(1003, "f4"))
for step in range(STEPS[r]):
    v.array[:] = values(r, step, 1003, "f4")
    v.sync(weight=r + 1)
    taken = [k for k in range(n) if STEPS[k] > step]
    same(v.array, reference("mean", [values(k, step, 1003, "f4") for k in taken], [k + 1 for k in taken]))
v.array[:] = r
{end}
assert (v.array == 6).all()
""",
    )
