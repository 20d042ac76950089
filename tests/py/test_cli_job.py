"""``malt run`` with ranks that use MALT."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from launching import launched, run, script, soon

TRAIN = """
import numpy as np
import malt
v = malt.Vector(np.ones(1000, np.float32), graph="{graph}", consistency="{consistency}")
print("ready", r, os.getpid(), flush=True)
while True:
    v.array[:] += 0.5
    v.sync()
"""


@pytest.mark.parametrize(("graph", "consistency"), [("all", "bsp"), ("halton", "ssp:2"), ("ring", "notify-ack")])
def test_killed_rank_ends_the_job_within_two_seconds(tmp_path: Path, graph: str, consistency: str) -> None:
    """The others raise PeerError within 1 s, and the job ends within 1 s after that."""
    with launched("-n", "4", script(tmp_path, TRAIN.format(graph=graph, consistency=consistency))) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 4)}
        with soon():
            os.kill(pids[2], signal.SIGKILL)
            assert job.finish() == 128 + signal.SIGKILL
        assert job.err.splitlines()[-1].startswith("malt run: rank 2 was killed by SIGKILL")


def test_crash_in_compiled_code_ends_with_the_lines_of_python(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import ctypes
        import malt
        malt.barrier()
        if r == 1:
            ctypes.string_at(0)
        malt.barrier()
        """,
    )
    done = run("-n", "3", path)
    assert done.process.returncode == 128 + signal.SIGSEGV
    assert "malt run: rank 1 was killed by SIGSEGV" in done.err
    assert re.search(r'\[1\] Fatal Python error: Segmentation fault(?s:.*)script.py", line \d+ in <module>', done.err)


def test_rank_that_fails_first_is_named_though_others_end_first(tmp_path: Path) -> None:
    """Its exception makes the others fail, while it takes its time to end."""
    path = script(
        tmp_path,
        """
        import atexit
        import malt
        malt.barrier()
        if r == 2:
            atexit.register(time.sleep, 0.3)
            raise KeyError("the cause")
        malt.barrier()
        """,
    )
    for _ in range(3):
        done = run("-n", "4", path)
        assert done.process.returncode == 1
        assert done.err.splitlines()[-1] in (
            "[2] KeyError: 'the cause'",
            "malt run: rank 2 failed with KeyError",
        ) or done.err.splitlines()[-1].startswith("malt run: rank 2 failed with KeyError; ")
        assert "rank 2 failed with KeyError" in done.err


def test_rank_that_hangs_in_its_end_is_stopped(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import threading
        import malt
        malt.barrier()
        if r == 1:
            threading.Thread(target=time.sleep, args=(1000,)).start()
            raise KeyError("the cause")
        time.sleep(1000)
        """,
    )
    with soon():
        done = run("-n", "2", path)
    assert done.process.returncode == 1
    assert "rank 1 failed with KeyError" in done.err


def test_ctrl_c_before_the_ranks_have_joined(tmp_path: Path) -> None:
    text = "import atexit, malt\natexit.register(time.sleep, 0.3)\nprint('ready', flush=True)\ntime.sleep(1000)"
    with launched("-n", "2", script(tmp_path, text)) as job:
        job.wait_for("ready", 2)
        job.signal(signal.SIGINT)
        assert job.finish() == 128 + signal.SIGINT


def test_ctrl_c_ends_a_job_in_the_middle_of_a_wait(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.barrier()
        print("ready", flush=True)
        if r: malt.barrier()
        else: time.sleep(1000)
        """,
    )
    with launched("-n", "3", path) as job:
        job.wait_for("ready", 3)
        with soon():
            job.signal(signal.SIGINT)
            assert job.finish() == 128 + signal.SIGINT


def test_summary_says_who_was_waited_for(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import numpy as np
        import malt
        v = malt.Vector(np.zeros(10))
        for i in range(5):
            v.array[:] += 1
            if r == 1: time.sleep(0.1)
            v.sync()
        v.close()
        if r == 1: time.sleep(0.5)
        malt.barrier()
        """,
    )
    done = run("-n", "2", "--summary", path)
    assert done.process.returncode == 0, done.err
    head, *rows, pays = done.err.splitlines()[-4:]
    assert re.match(
        r"malt run: does it pay\? 2 ranks took [\d.]+ s for steps that one rank alone would compute in", pays
    )
    assert head.split() == ["rank", "seconds", "compute", "waiting", "scatter", "gather", "collective", "waited", "for"]
    (_, _, _, waited, *_, rank, number, one), (_, _, computed, less, *_) = (
        re.sub(r"\(.*?\)", "", row).split() for row in rows
    )
    assert (rank, number) == ("rank", "1")
    assert float(waited) > 0.6  # also in the barrier
    assert float(less) < float(waited)
    assert float(one) == pytest.approx(float(waited), abs=0.1)  # at times it waits, and no rank is late any more
    assert float(computed) > 0.4


@pytest.mark.parametrize("call", ["v.sync()", "v.allreduce()"])
def test_summary_names_the_rank_that_several_wait_for(tmp_path: Path, call: str) -> None:
    """Ranks that sleep are woken once, by the last to come: what they waited was for that one."""
    path = script(
        tmp_path,
        f"""
        import malt
        v = malt.Vector(10)
        for i in range(10):
            v.array[:] += 1
            time.sleep(0.1 if r == 0 else 0.01)
            {call}
        """,
    )
    done = run("-n", "5", "--summary", path)
    (share,) = re.findall(r"\((\d+)% of that for rank 0\)", done.err)
    assert int(share) >= 85


def test_summary_counts_the_time_of_a_fold_in_python(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        v = malt.Vector(10)
        for i in range(5):
            v.sync(lambda own, updates: time.sleep(0.05) or own)
        """,
    )
    done = run("-n", "2", "--summary", path)
    rows = [line.split() for line in done.err.splitlines() if re.match(r" +[01] +\d", line)]
    folded = [float(re.sub(r"\(.*?\)", "", " ".join(row)).split()[5]) for row in rows]
    assert min(folded) >= 0.25


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_of_the_user_is_no_failure_of_a_rank(tmp_path: Path, number: signal.Signals) -> None:
    text = "import malt\nmalt.barrier()\nprint('ready', flush=True)\ntime.sleep(1000)"
    with launched("-n", "2", "--summary", script(tmp_path, text)) as job:
        job.wait_for("ready", 2)
        job.signal(number)
        assert job.finish() == 128 + number
    assert "does it pay? The job was ended from outside, by Ctrl-C or a signal." in job.err
    assert "--on-death" not in job.err


def test_summary_has_the_largest_age_of_an_update(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import numpy as np
        import malt
        v = malt.Vector(np.zeros(10), consistency="async")
        if r:
            v.scatter()
        malt.barrier()
        if not r:
            for i in range(3):
                v.scatter()
            v.gather()
        malt.barrier()
        """,
    )
    done = run("-n", "2", "--summary", path)
    assert done.process.returncode == 0, done.err
    head, *rows, _ = done.err.splitlines()[-4:]
    assert head.split()[-3:] == ["age", "waited", "for"]
    assert [re.sub(r"\(.*?\)", "", row).split()[7] for row in rows] == ["3", "0"]  # the barrier has lifted the clock


def test_summary_of_a_program_that_reports_nothing() -> None:
    done = run("-n", "2", "--summary", "true")
    assert done.process.returncode == 0
    assert done.err.count("no report") == 2


def test_children_of_ranks_do_not_report_in_their_name(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.barrier()
        code = "import os; print(os.environ.get('MALT_REPORT'), os.environ.get('MALT_RANK'))"
        subprocess.run([sys.executable, "-c", code], check=True)
        if os.fork() == 0:
            raise ValueError("in a child")
        os.wait()
        """,
    )
    done = run("-n", "2", path)
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == ["[0] None None", "[1] None None"]


def test_failure_before_the_summary_is_still_last(tmp_path: Path) -> None:
    done = run("-n", "2", "--summary", script(tmp_path, "import malt\nmalt.barrier()\nsys.exit(3 * r)"))
    assert done.process.returncode == 3
    assert done.err.splitlines()[-1].startswith("malt run: rank 1 ended with exit code 3")
