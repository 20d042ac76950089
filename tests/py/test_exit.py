"""The end of a process: signals that meet it while its handler of exit() is in the library."""

from __future__ import annotations

import signal

import jobs
import pytest
import syscalls
from launching import LONG

# Go's runtime preempts a thread by SIGURG. Faulthandler, which `malt run` turns on, gives the main thread a signal
# stack, which Go then uses, and takes it away before the handlers of exit() run.
SCRIPT = f"""
v = malt.Vector(np.zeros(4))
v.sync()
if r == 0:
{syscalls.TRACED.replace(chr(10), chr(10) + "    ")}
    os.getppid()
sys.exit(STATUS)
"""


@pytest.mark.skipif(bool(syscalls.possible()), reason=syscalls.possible())
@pytest.mark.parametrize("status", [0, 3])
def test_a_signal_of_go_at_every_system_call_of_an_exit(status: int) -> None:
    with jobs.Job(2, SCRIPT.replace("STATUS", str(status)), env={"PYTHONFAULTHANDLER": "1"}) as job:
        count, code = syscalls.interrupted(job.ranks[0].process.pid, signal.SIGURG)
        assert code == status, job.ranks[0].err.text
        assert count
        job.ranks[1].process.wait(LONG)
