"""Sparse models of real processes, one of which is stopped while the others go on."""

from __future__ import annotations

import signal

import jobs
from launching import LONG


def test_g4_a_stopped_reader_holds_nobody_up_and_misses_no_row() -> None:
    """Rank i counts in the rows i, i + n, …; what comes of a row may only grow."""
    with jobs.Job(
        3,
        """
        rows = np.arange(r, 600, n)
        seen = np.zeros(600)

        def look(own, updates):
            for u in updates:
                assert (u.rows % n == u.rank).all()
                assert (u.values > seen[u.rows]).all(), "a row came twice"
                seen[u.rows] = u.values
            return own

        rng = np.random.default_rng(r)
        v = malt.Vector(600, sparse="model", consistency="async", fold=look)
        print("ready")
        for part in range(2):
            sys.stdin.readline()
            for step in range(300):
                changed = rng.choice(rows, 5, replace=False)
                v.array[changed] += 1
                v.sync(rows=changed if step % 2 else None)
            print("through", part)
        malt.barrier()  # after it nothing more comes
        v.gather()
        seen[rows] = v.array[rows]
        for last in malt.allgather(seen):
            np.testing.assert_array_equal(last, seen)
        assert seen.sum() == n * 2 * 300 * 5
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[1].signal(signal.SIGSTOP)
        for rank in (job.ranks[0], job.ranks[2]):
            rank.say("go")
            rank.out.wait_for("through 0")
        job.ranks[1].signal(signal.SIGCONT)
        for rank in job.ranks:
            rank.say("go")
        job.ranks[1].say("go")
        for rank in job.ranks:
            rank.out.wait_for("through 1")
            assert rank.process.wait(LONG) == 0
