"""A guard on a count: exchanges that need not sleep enter the kernel not once."""

from __future__ import annotations

from itertools import islice

import jobs
import pytest
import syscalls

CALLS = 40

# A call that waits for the other rank may give its core away meanwhile, as often as that takes.
WAITING = {"sync in place", "sync through boxes", "allreduce", "barrier"}

SCRIPT = """
def mean(own, updates):
    for u in updates:
        own += u.array
    own /= len(updates) + 1
    return own

def vector(mode, **options):
    v = malt.Vector(np.zeros(1 << 16, np.float32), consistency=mode, **options)
    v.array[:] = r
    return v

def scattered():
    if r:
        a.scatter()
    malt.barrier()

a, b, c = vector("async"), vector("bsp"), vector("bsp", fold="mean-received")
nothing = lambda: None
cases = {
    "scatter": (malt.barrier, a.scatter),
    "gather of nothing": (lambda: a.gather(), a.gather),
    "gather of one": (scattered, a.gather),
    "fold in Python": (scattered, lambda: a.gather(fold=mean)),
    "sync that is not due": (nothing, lambda: b.sync(every=1 << 40)),
    "sync in place": (nothing, b.sync),
    "sync through boxes": (nothing, c.sync),
    "allreduce": (nothing, b.allreduce),
    "barrier": (nothing, malt.barrier),
}
def work(calls):
    for name, (before, call) in cases.items():
        print(name)
        for _ in range(calls):
            before()
            os.getppid()
            call()
            os.getppid()
        malt.barrier()
os.getppid, mark = nothing, os.getppid  # what is made at first use is made
work(5)
os.getppid = mark
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1 - r:][:1])
print("cases:", *cases, sep="\\n", end="\\n\\n")
"""


@pytest.mark.skipif(bool(syscalls.possible()), reason=syscalls.possible())
def test_exchanges_make_no_system_call() -> None:
    for _ in range(3):  # on a busy machine the other rank is late; one more in each call shows every time
        quick = measured()
        if not any(quick.values()):
            break
    for name, count in quick.items():
        assert count == 0, f"{name}: three of four calls make {count} system calls or more, and none is needed"


def measured() -> dict[str, int]:
    """Return how many system calls at most the quickest quarter of the calls makes, by case."""
    script = SCRIPT + "if r == 0:" + syscalls.TRACED.replace("\n", "\n    ") + f"\nwork({CALLS})\n"
    with jobs.Job(2, script) as job:
        pieces = syscalls.during(job.ranks[0].process.pid)
        names = job.ranks[0].out.wait_for(r"cases:\n((?:.+\n)+)\n")[1].splitlines()
        found = {name: list(islice(pieces, CALLS)) for name in names}
        assert not list(pieces)
        job.finish()
    assert len(found) == 9
    quick = {}
    for name, calls in found.items():
        counts = sorted(sum(n != syscalls.YIELD or name not in WAITING for n in call) for call in calls)
        assert len(counts) == CALLS
        # Now and then the other rank is late; one more in each call would show in the least of them, too.
        quick[name] = counts[CALLS // 4]
    return quick
