"""What a signal handler raises during a call comes out of that call, once, whatever the call's answer was."""

from __future__ import annotations

import signal

import jobs
import pytest
from launching import LONG

# A timer whose handler does nothing until it interrupts a wait in the library.
STRIKE = """
import traceback
class Stop(BaseException):
    pass
def handler(number, frame):
    if any(f.f_code.co_name == "_look" for f, _ in traceback.walk_stack(frame)):
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("handling")
        sys.stdin.readline()
        raise Stop
signal.signal(signal.SIGALRM, handler)
malt.init()
"""

# Calls in which rank 0 waits for something that rank 1 can do alone.
WAITS = {
    "sync": ("v = malt.Vector(3, consistency='ssp:0')", "v.sync()"),
    "gather": ("v = malt.Vector(3, consistency='ssp:0')", "(v.scatter(), v.gather())[1]"),
    "gather that waits": ("v = malt.Vector(3, consistency='async')", "v.scatter() if r else v.gather(wait=300)"),
    "named fold": ("v = malt.Vector(3, consistency='ssp:0')", "v.sync('max')"),
    "fold": ("v = malt.Vector(3, consistency='ssp:0')", "v.sync(lambda own, updates: own)"),
    "scatter": (
        "v = malt.Vector(3, consistency='notify-ack', graph=malt.Graph([[1], []], allow_disconnected=True))",
        "v.gather() if r else (v.scatter(), v.gather(), v.scatter())",
    ),
    "barrier": ("", "malt.barrier()"),
    "allgather": ("", "malt.allgather(r)"),
}


@pytest.mark.parametrize("wait", WAITS)
def test_what_a_handler_raises_while_a_call_succeeds_comes_out_of_the_call(wait: str) -> None:
    make, call = WAITS[wait]
    with jobs.Job(
        2,
        f"""{STRIKE}
{make}
if r:
    sys.stdin.readline()
    {call}
    print("through")
else:
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        {call}
        print("not raised")
    except Stop:
        print("raised")
malt.barrier()
""",
    ) as job:
        job.ranks[0].out.wait_for("handling")
        job.ranks[1].say("go on")
        job.ranks[1].out.wait_for("through")
        job.ranks[0].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], [rank.err.text for rank in job.ranks]
        assert job.ranks[0].out.text.split() == ["handling", "raised"]


def test_a_wait_that_a_handler_ends_is_not_told_as_one_until_the_timeout() -> None:
    script = """
v = malt.Vector(3, consistency="ssp:0")
if r:
    sys.stdin.readline()
else:
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        v.sync()
    except Stop:
        print(malt._lib.JOB.longest)
"""
    with jobs.Job(2, STRIKE + script) as job:
        job.ranks[0].say("go on")
        job.ranks[0].out.wait_for("[)]")
        job.ranks[1].say("go on")
        assert job.finish()[0].out.text.split("\n")[1] == "(0.0, '')"


def test_what_a_handler_raises_while_a_call_fails_has_the_error_as_its_context() -> None:
    with jobs.Job(
        3,
        f"""{STRIKE}
v = malt.Vector(3, consistency="ssp:0")
if r == 2:
    try:
        malt.barrier()
    except malt.PeerError:
        print("heard", flush=True)
if r:
    sys.stdin.readline()
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
try:
    v.sync()
except Stop as e:
    print("raised", e.__context__)
try:
    v.gather()
except malt.PeerError:
    print("dead")
os._exit(0)
""",
    ) as job:
        job.ranks[0].out.wait_for("handling")
        job.ranks[1].signal(signal.SIGKILL)
        job.ranks[2].out.wait_for("heard")
        job.ranks[0].say("go on")
        assert job.ranks[0].wait() == 0
        assert "rank 1 is dead" in job.ranks[0].out.wait_for("raised .*")[0]
        assert job.ranks[0].out.finish().split()[-1] == "dead"


def test_a_job_that_was_joined_with_arguments_waits_as_long_as_they_say() -> None:
    """The first part of each wait is the library's; one that is none at all would warn, or end, at once."""
    with jobs.Job(
        2,
        f"""import warnings
import malt
malt.init(timeout={LONG})
import os, signal, sys, time
r = malt.rank()
{STRIKE.replace("raise Stop", "return")}
v = malt.Vector(3)
if r:
    sys.stdin.readline()
else:
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    print("waiting")
start = time.monotonic()
with warnings.catch_warnings(record=True) as warned:
    v.sync()
assert not warned or time.monotonic() - start >= malt._lib.loading.LONG_WAIT, warned
""",
        prelude=False,
    ) as job:
        job.ranks[0].out.wait_for("handling")
        job.ranks[1].say("go on")
        job.ranks[0].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0], [rank.err.text for rank in job.ranks]


MAKINGS = {"vector": "malt.Vector(3)", "segment": "malt.Segment(3)"}


@pytest.mark.parametrize("kind", MAKINGS)
def test_an_object_whose_making_was_interrupted_at_its_end_is_closed(kind: str) -> None:
    jobs.run(
        1,
        f"""
        import threading
        from malt._lib import loading
        make, made = getattr(loading.lib, "malt_{kind}_new"), []
        def interrupted(*args):
            status = make(*args)
            made.append(args[-1][0])
            loading.caught[threading.get_ident()] = KeyboardInterrupt()
            return status
        loading.lib.malt_{kind}_new = interrupted
        malt.init()
        try:
            {MAKINGS[kind]}
            sys.exit("not raised")
        except KeyboardInterrupt:
            pass
        assert made[0] and not loading.caught
        assert loading.lib.malt_object_close(made[0]) == loading.lib.MALT_EHANDLE
        """,
    )


def test_an_init_that_is_interrupted_when_it_has_joined_can_be_made_again() -> None:
    jobs.run(
        2,
        """
        import malt, os
        from malt._lib import loading
        loading.lib.malt_version
        join, strikes = loading.lib.malt_init, [KeyboardInterrupt]
        def interrupted(*args):
            status = join(*args)
            if status == 0 and strikes:
                raise strikes.pop()
            return status
        loading.lib.malt_init = interrupted
        try:
            malt.init()
            raise SystemExit("not raised")
        except KeyboardInterrupt:
            pass
        v = malt.Vector(3)              # waits, for as long as MALT_TIMEOUT says
        assert malt.size() == 2
        assert malt._lib.JOB.timeout == float(os.environ["MALT_TIMEOUT"])
        v.sync()
        """,
        prelude=False,
    )
