"""What a rank sees of the others: deaths, ends, disagreements, absences (G5)."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

import jobs
import pytest
from launching import Stopwatch, soon

# Calls in which rank 0 waits for the others, and what has to be made for them.
WAITS = {
    "barrier": ("", "malt.barrier(**t)"),
    "allreduce": ("", "malt.allreduce(np.ones(3), **t)"),
    "number": ("", "malt.allreduce(1, **t)"),
    "broadcast": ("", "malt.broadcast(None, root=1, **t)"),
    "allgather": ("", "malt.allgather('x', **t)"),
    "making": ("", "malt.Vector(3)"),
    "segment": ("", "malt.Segment(3)"),
    "bsp": ("v = malt.Vector(3)", "v.sync(**t)"),
    "ssp": ("v = malt.Vector(3, consistency='ssp:0')", "v.sync(**t)"),
    "notify-ack": ("v = malt.Vector(3, consistency='notify-ack')", "v.sync(**t)"),
    "scatter": ("v = malt.Vector(3, consistency='notify-ack')", "v.sync(**t) if r else (v.scatter(), v.gather(**t))"),
    "fold": ("v = malt.Vector(3)", "v.sync(lambda own, updates: own, **t)"),
    "updates": ("s = malt.Segment(3, consistency='notify-ack')", "s.scatter(); s.updates(**t)"),
    "vector-allreduce": ("v = malt.Vector(3)", "v.allreduce(**t)"),
    "vector-broadcast": ("v = malt.Vector(3)", "v.broadcast(1, **t)"),
    "configure": ("v = malt.Vector(3)", "v.configure(fold='sum', **t)"),
}


@pytest.fixture(name="waiting", params=WAITS)
def _waiting(request: pytest.FixtureRequest) -> tuple[str, str]:
    return WAITS[request.param]


def test_a_killed_rank_ends_every_wait_within_a_second(waiting: tuple[str, str]) -> None:
    make, wait = waiting
    with jobs.Job(
        3,
        f"""
t = {{}}
{make}
print("ready")
if r == 1:
    sys.stdin.readline()
try:
    {wait}
except malt.PeerError as e:
    print("dead", e.rank, e)
""",
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        with Stopwatch() as watch:
            job.ranks[1].signal(signal.SIGKILL)
            said = [job.ranks[n].out.wait_for(r"dead (.*)\n")[1] for n in (0, 2)]
        for sentence in said:
            assert sentence.startswith("1 ")
            assert "rank 1 is dead" in sentence
        assert watch.seconds < 1


def test_g5_a_wait_ends_at_its_timeout_and_names_whom_it_was_for(waiting: tuple[str, str]) -> None:
    make, wait = waiting
    with jobs.Job(
        2,
        f"""
t = {{"timeout": 0.3}}
{make}
if r == 1:
    sys.stdin.readline()
    os._exit(0)
malt._lib.JOB.set_timeout(0.3)    # for what takes no timeout
start = time.monotonic()
try:
    {wait}
except malt.TimeoutError as e:
    assert isinstance(e, TimeoutError)
    assert time.monotonic() - start > 0.25
    print(e)
try:
    malt.barrier(timeout=0)           # the place is free: nothing refuses this but the time
except malt.TimeoutError:
    print("free")
os._exit(0)
""",
    ) as job:
        with soon():
            assert job.ranks[0].wait() == 0
        what, where, do, more, free = job.ranks[0].out.finish().splitlines()
        assert re.fullmatch(r"malt: \S+ timed out after 0.3 s \(timeout= or MALT_TIMEOUT changes this\)", what), what
        assert re.match("waited for rank 1 ", where), where
        assert do.endswith("?"), do
        assert more == "More: malt explain " + (
            "sync-timeout" if re.search(r"\.(sync|scatter|gather)", what) else "different-calls"
        ), more
        assert free == "free"


def test_ctrl_c_ends_every_wait_at_once(waiting: tuple[str, str]) -> None:
    make, wait = waiting
    with jobs.Job(
        2,
        f"""
t = {{}}
malt.Vector, malt.Segment             # are loaded now, not when the interrupt may come
{make}
if r == 1:
    sys.stdin.readline()
    os._exit(0)
try:
    print("waiting")
    {wait}
except KeyboardInterrupt:
    print("interrupted")
try:
    malt.barrier(timeout=0)
except malt.TimeoutError:
    print("free")
os._exit(0)
""",
    ) as job:
        job.ranks[0].out.wait_for("waiting")
        with soon():
            job.ranks[0].signal(signal.SIGINT)
            assert job.ranks[0].wait() == 0, job.ranks[0].err.finish()
        # The line may have been interrupted before its end.
        assert job.ranks[0].out.finish().removeprefix("waiting").split() == ["interrupted", "free"]


def test_a_sync_that_timed_out_goes_on_with_a_gather() -> None:
    with jobs.Job(
        2,
        """
        v = malt.Vector(np.full(3, r + 1.0), start="own", fold="sum")
        if r == 1:
            sys.stdin.readline()
            v.sync()
        else:
            try:
                v.sync(timeout=0.1)
            except malt.TimeoutError as e:
                print(e)
            assert v.gather() == 1
        assert v.array.tolist() == [3] * 3
        """,
    ) as job:
        job.ranks[0].out.wait_for("waited for rank 1")
        job.ranks[1].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], job.ranks[0].err.text


def test_the_job_goes_on_after_a_collective_call_was_given_up() -> None:
    with jobs.Job(
        2,
        """
        malt.init()
        if r == 1:
            sys.stdin.readline()
        try:
            malt.barrier(timeout=None if r else 0.1)
        except malt.Error as e:
            print(type(e).__name__, e)
        assert malt.allreduce(r, "sum") == 1
        """,
    ) as job:
        job.ranks[0].out.wait_for(r"TimeoutError .*\nwaited for rank 1")
        job.ranks[1].say("go on")
        job.ranks[1].out.wait_for("StateError malt: rank 0 gave up malt.barrier")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], job.ranks[1].err.text


def test_a_long_wait_says_once_whom_it_is_for() -> None:
    with jobs.Job(
        2,
        jobs.WARNS_EARLY + "if r == 1: sys.stdin.readline()\nmalt.barrier()",
    ) as job:
        said = r"script\.py:\d+: RuntimeWarning: malt: malt.barrier has waited for \d+ s, and continues for \d+ s\n"
        job.ranks[0].err.wait_for(
            said + r"waited for rank 1 .*\nAll ranks must make this call.*\nMore: malt explain different-calls"
        )
        job.ranks[1].say("go on")
        job.finish()
        assert job.ranks[0].err.text.count("RuntimeWarning") == 1


def test_an_uncaught_exception_ends_the_others_with_its_reason() -> None:
    with jobs.Job(
        3,
        """
        v = malt.Vector(3)
        if r == 2:
            raise KeyError("of rank 2")
        v.sync()
        """,
    ) as job:
        ranks = job.finish()
        assert [rank.process.returncode for rank in ranks] == [1, 1, 1]
        assert "KeyError: 'of rank 2'" in ranks[2].err.text
        for rank in ranks[:2]:
            assert "\nmalt.PeerError: malt: rank 2 is dead: KeyError: 'of rank 2'\nthis rank was in " in rank.err.text


@pytest.fixture(name="over", params=["shm", "tcp"])
def _over(request: pytest.FixtureRequest) -> dict[str, str]:
    return jobs.by_tcp() if request.param == "tcp" else {}


@pytest.mark.parametrize(
    ("error", "heard", "told"),
    [
        # Rank 1 ends because of rank 2, and rank 2 hears that it is taken for dead, and gives up, too. Rank 0 hears
        # of both, of either first.
        (
            'malt.PeerError("rank 7 is dead tired", 2, "unreachable", "no answer")',
            ("2 unreachable ", "1 failed rank 2 reported it and gave up"),
            (
                "1 failed it considers this rank dead: ",
                "0 failed it considers this rank dead: ",
                "malt: rank 0 failed in malt.barrier: it considers this rank dead: ",
            ),
        ),
        # An error of the user's own is the end of rank 1, whatever its name and words.
        (
            'type("PeerError", (Exception,), {})("rank 2 is dead: PeerError: rank 7 is dead tired")',
            ("1 failed PeerError: rank 2 is dead: PeerError: rank 7 is dead tired",),
            ("1 failed ",),
        ),
    ],
    ids=["malt's", "the user's"],
)
def test_who_died_first_is_data(over: dict[str, str], error: str, heard: Sequence[str], told: Sequence[str]) -> None:
    outputs = jobs.run(
        3,
        f"""
        try:
            malt.barrier()
            if r == 1:
                malt._lib.abort({error})
                os._exit(0)
            malt.barrier()  # rank 1 may have ended before this rank is through with the first
        except malt.PeerError as e:
            print(e.rank, e.kind, e.why)
            os._exit(0)
        except malt.StateError as e:  # rank 0 has given the call up, and has yet to end
            print(e)
            os._exit(0)
        """,
        env=over,
    )
    assert outputs[0].startswith(tuple(heard))
    assert outputs[2].startswith(tuple(told))


def test_a_death_is_told_on_by_those_that_end_over_it() -> None:
    """Rank 0 waits for rank 1, which has ended over the death of rank 2, and hears of rank 2."""
    with jobs.Job(
        3,
        """
        v = malt.Vector(3, graph="ring", consistency="notify-ack")
        print("ready")
        if r == 2:
            sys.stdin.readline()
        try:
            while True:
                v.sync()
        except malt.PeerError as e:
            assert e.rank == 2, e
            assert len(str(e)) < 400, e
            raise
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[2].signal(signal.SIGKILL)
        for rank in job.finish()[:2]:
            assert re.search(r"malt.PeerError: malt: .*rank 2 is dead", rank.err.text), rank.err.text


def test_a_rank_that_has_ended_is_not_waited_for_by_syncs_but_missed_by_collectives() -> None:
    outputs = jobs.run(
        3,
        """
        v = malt.Vector(3, fold="sum")
        v.array += 1
        v.sync()
        if r == 2:
            sys.exit()
        for _ in range(5):
            v.sync()
        try:
            malt.allreduce(1)
        except malt.StateError as e:
            print(e)
        """,
    )
    assert outputs[2] == ""
    for said in outputs[:2]:
        assert "rank 2 has ended" in said


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("3", "4", ["3", "4"]),
        ("3, dtype='f4'", "3", ["float32", "float64"]),
        ("[np.zeros(2), np.zeros(3)]", "5", ["float64"]),
        ("(500, 1000)", "(1000, 500)", ["float64[500x1000]", "float64[1000x500]"]),
        ("(4, 5), sparse='model'", "(4, 1, 5), sparse='model'", ["float64[4x5]", "float64[4x1x5]"]),
        ("[np.zeros((2, 3)), np.ones(1)]", "[np.zeros((3, 2)), np.ones(1)]", ["[2x3] float64[1]", "[3x2] float64[1]"]),
        ("3, graph='ring'", "3, graph='halton'", ["ring", "halton"]),
        ("3, consistency='ssp:1'", "3, consistency='ssp:2'", ["ssp:1", "ssp:2"]),
        ("3, name='a'", "3, name='b'", ["a", "b"]),
    ],
)
def test_ranks_that_make_different_vectors_all_see_both(ours: str, theirs: str, words: list[str]) -> None:
    outputs = jobs.run(
        3,
        f"""
        try:
            malt.Vector({ours}) if r != 1 else malt.Vector({theirs})
        except malt.MismatchError as e:
            print(e)
        v = malt.Vector(2, graph="ring")          # nothing is left behind
        v.sync()
        """,
    )
    for said in outputs:
        assert said
        assert all(word in said for word in words), said


def test_ranks_in_different_collective_calls_see_both() -> None:
    outputs = jobs.run(
        2,
        """
        malt.init()
        try:
            malt.barrier() if r else malt.allgather("x")
        except malt.MismatchError as e:
            print(e)
        """,
    )
    for said in outputs:
        assert "barrier" in said
        assert "allgather" in said


def test_a_rank_that_never_arrives_is_named() -> None:
    with jobs.Job(2, "", timeout=1.0, env={"MALT_SIZE": "3"}) as job:
        for rank in job.finish():
            assert rank.process.returncode == 1
            # The first to give up tells the others, with its reason.
            last = rank.err.text.rpartition("\nmalt.")[2]
            assert re.search(r"(?s)(Timeout|Peer)Error.*\brank(s [01],)? 2\b", last), last
            assert "malt_init" not in last


def test_two_ranks_with_one_number() -> None:
    with jobs.Job(2, "malt.init()\nprint('joined')\nsys.stdin.readline()\nmalt.barrier()") as job:
        for rank in job.ranks:
            rank.out.wait_for("joined")
        with jobs.Job(1, "", env={**job.env, "MALT_RANK": "1"}) as second:
            (refused,) = second.finish()
            assert refused.process.returncode == 1
            assert re.search(r"^malt\.StateError: .*rank 1", refused.err.text, re.M), refused.err.text
        for rank in job.ranks:  # the first two have not noticed
            rank.say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0]


def test_a_thread_that_uses_a_busy_vector_is_refused() -> None:
    with jobs.Job(
        2,
        """
        import threading
        v = malt.Vector(3, name="w")
        if r == 0:
            def sync():
                while True:               # it may be refused while the other thread looks
                    try:
                        return v.sync()
                    except malt.StateError:
                        pass
            thread = threading.Thread(target=sync)
            thread.start()
            while True:                   # until the thread is inside, where it waits for rank 1
                try:
                    v.stats()
                except malt.StateError:
                    break
            try:
                v.configure(fold="sum", timeout=0)
            except malt.StateError as e:
                print(e, flush=True)
            malt.broadcast("go")          # the job is another object
            thread.join()
        else:
            sys.stdin.readline()
            malt.broadcast()
            v.sync()
        """,
    ) as job:
        job.ranks[0].out.wait_for('vector "w" is busy: it serves one call at a time')
        job.ranks[1].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], job.ranks[0].err.text


def test_many_threads_on_one_vector_are_served_or_refused() -> None:
    jobs.run(
        2,
        """
        import threading
        v = malt.Vector(np.zeros(1000), consistency="async", fold="max")
        refused = []
        def hammer(k):
            for i in range(300):
                try:
                    v.sync() if i % 2 else v.gather(lambda own, updates: own)
                except malt.StateError as e:
                    assert "at a time" in str(e) or "being folded" in str(e), e
                    refused.append(k)
        threads = [threading.Thread(target=hammer, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert np.ptp(v.array) == 0
        """,
    )


def test_g4_a_stopped_rank_holds_nobody_up_in_async() -> None:
    with jobs.Job(
        3,
        """
        v = malt.Vector(np.zeros(1000), consistency="async")
        print("ready")
        sys.stdin.readline()
        for _ in range(2000):
            v.array += 1
            v.sync()
        print("through")
        os._exit(0)
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[1].signal(signal.SIGSTOP)
        for rank in (job.ranks[0], job.ranks[2]):
            rank.say("go")
            rank.out.wait_for("through")
        assert job.ranks[1].process.poll() is None


def test_more_ranks_than_cores_work() -> None:
    jobs.run(
        12,
        """
        v = malt.Vector(np.full(10, float(r)), start="own", graph="halton")
        for _ in range(3):
            v.sync()
        v.allreduce()
        """,
    )
