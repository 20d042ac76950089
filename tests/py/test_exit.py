"""The end of a process: signals that meet it while its handlers are in the library."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import jobs
import pytest
import syscalls
from launching import LONG, run, script

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


def test_a_ctrl_c_at_the_end_keeps_no_rank_from_telling_where_its_time_went(tmp_path: Path) -> None:
    text = """
        import malt
        malt.init()
        book = malt._lib.book_all
        def struck():
            os.kill(os.getpid(), signal.SIGINT)
            book()
        malt._lib.book_all = struck  # the first thing of the handler
        """
    done = run("-q", "--summary", "-n", "2", script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    assert "KeyboardInterrupt" not in done.err
    assert len(re.findall(r"^ +[01] +\d\.\d\d ", done.err, re.M)) == 2, done.err
