"""A gather that waits for an update, and what ends the wait."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

import jobs
import pytest

WAYS: dict[str, Callable[[], Mapping[str, str]]] = {"shared memory": dict, "tcp": jobs.by_tcp}

MAKE = """
v = malt.Vector(3, consistency="async", name="w")
if r:
    sys.stdin.readline()
    v.scatter()
    malt.barrier()
"""


@pytest.mark.parametrize("way", WAYS)
def test_an_update_ends_it(way: str) -> None:
    script = f"""{jobs.WARNS_EARLY}{MAKE}else:
    print("folded", v.gather(wait=3000))
    malt.barrier()
"""
    with jobs.Job(2, script, env=WAYS[way]()) as job:
        told = job.ranks[0].err.wait_for(r"w.gather has waited for \d+ s.*\n.*rank 1 \(.*")[0]
        assert "computing" in told, told
        job.ranks[1].say("go on")
        assert job.finish()[0].out.text == "folded 1\n"


@pytest.mark.parametrize("way", WAYS)
def test_a_sender_that_is_killed_ends_it_with_an_error(way: str) -> None:
    script = f"""{MAKE}else:
    print("waits", flush=True)
    try:
        v.gather(wait=3000)
    except malt.PeerError as e:
        print("rank", e.rank, flush=True)
    os._exit(0)
"""
    with jobs.Job(2, script, env=WAYS[way]()) as job:
        job.ranks[0].out.wait_for("waits")
        job.ranks[1].signal(signal.SIGKILL)
        assert job.ranks[0].wait() == 0
        assert job.ranks[0].out.finish().split("\n")[1] == "rank 1"


def test_without_the_sender_that_is_killed_nothing_is_waited_for() -> None:
    script = f"""{MAKE}else:
    print("waits", flush=True)
    print("folded", v.gather(wait=3000), "of", malt.alive())
"""
    with jobs.Job(2, script, env={"MALT_ON_DEATH": "continue"}) as job:
        job.ranks[0].out.wait_for("waits")
        job.ranks[1].signal(signal.SIGKILL)
        assert job.ranks[0].wait() == 0
        assert job.ranks[0].out.finish().split("\n")[1] == "folded 0 of [0]"


def test_ctrl_c_ends_it() -> None:
    script = f"""{MAKE}else:
    try:
        print("waits", flush=True)
        v.gather(wait=3000)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print("folded", v.gather(wait=3000))
    malt.barrier()
"""
    with jobs.Job(2, script) as job:
        job.ranks[0].out.wait_for("waits\n")
        job.ranks[0].signal(signal.SIGINT)
        job.ranks[0].out.wait_for("interrupted")
        job.ranks[1].say("go on")
        assert job.finish()[0].out.text == "waits\ninterrupted\nfolded 1\n"


def test_a_second_thread_is_refused_meanwhile() -> None:
    script = f"""{MAKE}else:
    import threading
    def waits():
        while True:
            try:
                return print("folded " + str(v.gather(wait=3000)))
            except malt.StateError:  # the other thread is in its gather
                pass
    thread = threading.Thread(target=waits)
    thread.start()
    try:
        while True:
            v.gather()
    except malt.StateError as e:
        print(e, flush=True)
    thread.join()
    malt.barrier()
"""
    with jobs.Job(2, script) as job:
        job.ranks[0].out.wait_for("is in a call of another thread|serves one call at a time")
        job.ranks[1].say("go on")
        assert "folded 1" in job.finish()[0].out.text  # its end may stand before or behind that of the error
