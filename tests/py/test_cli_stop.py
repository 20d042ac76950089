"""``malt run``: failures, signals, and that nothing is ever left behind.

That a job ends within a second is a promise of the launcher itself, so these
tests measure it; they allow for a loaded machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import pytest
from launching import LONG, launched, run, script, soon, wait_for_end

WAIT = "print('ready', os.getpid(), flush=True); signal.pause()"


def test_exit_code_and_traceback_of_the_first_failure(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        print("ready", flush=True)
        if r == 2:
            while len(os.listdir(sys.argv[1])) < n - 1: time.sleep(0.01)
            raise KeyError("the reason")
        def noise(*_):
            print("noise " * 10, file=sys.stderr)
            sys.exit(7)
        signal.signal(signal.SIGTERM, noise)
        open(f"{sys.argv[1]}/{r}", "w").close()
        time.sleep(1000)
        """,
    )
    (tmp_path / "ready").mkdir()
    with soon():
        done = run("-n", "4", path, str(tmp_path / "ready"), patient="GRACE")
    assert done.process.returncode == 1
    lines = done.err.splitlines()
    # What rank 2 said comes last, after the noise of those that it took with it.
    assert lines[-1] == "[2] KeyError: 'the reason'"
    at = len(lines) - 1 - lines[::-1].index("[2] Traceback (most recent call last):")
    assert lines[at - 1] == "malt run: rank 2 ended with exit code 1; the other 3 were stopped; it ended with:"
    assert sum("noise" in line for line in lines[:at]) == 3
    assert all(line.startswith("[2] ") for line in lines[at:])


def test_last_words_are_not_repeated_when_they_were_last_anyway(tmp_path: Path) -> None:
    done = run("-q", "-n", "1", script(tmp_path, "raise ValueError('once')"))
    assert done.err.count("ValueError: once") == 1
    assert done.err.splitlines()[-1] == "malt run: rank 0 ended with exit code 1"


@pytest.mark.parametrize("code", [1, 3, 255])
def test_exit_code(tmp_path: Path, code: int) -> None:
    done = run("-n", "3", script(tmp_path, f"sys.exit({code}) if r == 1 else signal.pause()"))
    assert done.process.returncode == code
    assert f"rank 1 ended with exit code {code}; the other 2 were stopped" in done.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT", "SIGINT"])
def test_signal_that_killed_a_rank_is_named_last(tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    path = script(
        tmp_path,
        f"signal.signal({number:d}, signal.SIG_DFL) if {number:d} != 9 else None\n"
        f"os.kill(os.getpid(), {number:d}) if r == 2 else signal.pause()",
    )
    done = run("-n", "4", path)
    assert done.process.returncode == 128 + number
    assert done.err.splitlines()[-1].startswith(f"malt run: rank 2 was killed by {name}")


def test_rank_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", os.getpid(), flush=True)
        signal.pause()
        """,
    )
    with launched("-n", "4", path) as job:
        pids = job.wait_for(r"ready (\d+)", 4)
        with soon():
            os.kill(int(pids[0]), signal.SIGKILL)
            assert job.finish() == 128 + signal.SIGKILL


def test_stopped_rank_is_ended(tmp_path: Path) -> None:
    with launched("-n", "3", script(tmp_path, WAIT)) as job:
        pids = [int(pid) for pid in job.wait_for(r"ready (\d+)", 3)]
        os.kill(pids[0], signal.SIGSTOP)
        os.kill(pids[1], signal.SIGKILL)
        assert job.finish(LONG) == 128 + signal.SIGKILL


def test_stopped_rank_gets_its_sigterm(tmp_path: Path) -> None:
    """SIGTERM alone would only be noted by a stopped process, which SIGKILL would then end."""
    path = script(
        tmp_path,
        """
        def end(*_):
            print("saw SIGTERM", r, flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print("ready", r, os.getpid(), flush=True)
        while True: signal.pause()
        """,
    )
    with launched("-n", "2", path, patient="GRACE") as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 2)}
        os.kill(pids[0], signal.SIGSTOP)
        os.kill(pids[1], signal.SIGKILL)
        job.finish()
        assert "saw SIGTERM 0" in job.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_malt_run_reaches_a_stopped_rank(tmp_path: Path, number: signal.Signals) -> None:
    path = script(
        tmp_path,
        """
        def end(number, _):
            print("saw", signal.Signals(number).name, flush=True)
            sys.exit(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, end)
        print("ready", os.getpid(), flush=True)
        while True: signal.pause()
        """,
    )
    with launched("-n", "1", path) as job:
        [pid] = job.wait_for(r"ready (\d+)", 1)
        os.kill(int(pid), signal.SIGSTOP)
        job.signal(number)
        job.finish()
        assert f"saw {number.name}" in job.out


def test_children_of_ranks_end_with_them(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        subprocess.Popen(["sh", "-c", "trap '' TERM; echo child $$; sleep 1000"])
        time.sleep(1000) if r else signal.pause()
        """,
    )
    with launched("-n", "2", path) as job:
        children = [int(pid) for pid in job.wait_for(r"child (\d+)", 2)]
        job.signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM
        assert all(wait_for_end(pid, 0) for pid in children)


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_what_ranks_leave_running_is_ended_and_said(redirect: str) -> None:
    with soon():
        done = run("-n", "2", "--", "sh", "-c", f"echo from $MALT_RANK; sleep 1000 {redirect} &")
    assert done.process.returncode == 0
    assert sorted(done.out.split()) == ["0", "1", "[0]", "[1]", "from", "from"]
    assert "ended the processes that rank 0, 1 had left running" in done.err


def test_a_daemon_that_holds_the_output_open_holds_nothing_up(tmp_path: Path) -> None:
    """With setsid it has left the job for good: it is not ours to end, nor to wait for."""
    with launched("-n", "1", "--", "sh", "-c", "setsid sleep 1000 & echo pid $!; echo no end") as job:
        (pid,) = job.wait_for(r"pid (\d+)")
        try:
            with soon():
                assert job.finish() == 0
            assert not wait_for_end(int(pid), 0)
        finally:
            os.kill(int(pid), signal.SIGKILL)
            wait_for_end(int(pid))
        assert "[0] no end" in job.out


def test_children_may_still_write_when_their_rank_has_ended() -> None:
    """Such as a resource tracker that cleans up after its Python."""
    late = "sh -c 'read x; echo late' < /proc/self/fd/0 & sleep 0 & exit 0"
    done = run("-n", "1", "--", "sh", "-c", late, patient="DRAIN")
    assert done.out == "[0] late\n"


def test_killed_launcher_takes_its_ranks_and_their_children(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        child = subprocess.Popen(["sleep", "1000"])
        print("pids", os.getpid(), child.pid, flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True: signal.pause()
        """,
    )
    with launched("-n", "4", path) as job:
        pids = [int(pid) for pair in job.wait_for(r"pids (\d+) (\d+)", 4) for pid in pair]
        with soon():
            job.signal(signal.SIGKILL)
            assert all(wait_for_end(pid) for pid in pids)


def test_killed_launcher_and_guard_still_take_the_ranks(tmp_path: Path) -> None:
    """Then it is the kernel that ends the ranks: the parent-death signal."""
    with launched("-n", "3", script(tmp_path, WAIT)) as job:
        pids = [int(pid) for pid in job.wait_for(r"ready (\d+)", 3)]
        guard = _guard(job.pid)
        assert guard
        os.kill(guard, signal.SIGKILL)
        job.signal(signal.SIGKILL)
        assert all(wait_for_end(pid) for pid in pids)


def test_a_guard_that_was_killed_is_replaced(tmp_path: Path) -> None:
    """Only a guard ends what ranks have started, and it has to know those of before."""
    path = script(
        tmp_path,
        """
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        print("child", child.pid, flush=True)
        signal.pause()
        """,
    )
    with launched("-n", "2", path) as job:
        children = [int(pid) for pid in job.wait_for(r"child (\d+)", 2)]
        guard = _guard(job.pid)
        assert guard
        os.kill(guard, signal.SIGKILL)
        deadline = time.monotonic() + LONG
        while (other := _guard(job.pid)) in (None, guard) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert other not in (None, guard)
        job.signal(signal.SIGKILL)
        assert all(wait_for_end(pid) for pid in children)


def _guard(pid: int) -> int | None:
    for child in _children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that was killed
            if b"_ranks/guard.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
    return None


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_job_outlives_its_guard(tmp_path: Path, number: int) -> None:
    with launched("-n", "2", script(tmp_path, WAIT)) as job:
        pids = [int(pid) for pid in job.wait_for(r"ready (\d+)", 2)]
        guard = next(pid for pid in _children(job.pid) if pid not in pids)
        os.kill(guard, number)
        if number == signal.SIGKILL:
            wait_for_end(guard)
        job.signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM


HANDLES = """
def end(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    if number not in (signal.SIGUSR1, signal.SIGUSR2):
        time.sleep(0.6)  # longer than a stopped job would get
        print("finished", flush=True)
        sys.exit(0)
for name in ("INT", "TERM", "HUP", "USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), end)
print("ready", os.getpid(), flush=True)
while True: signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_ranks_get_the_signal_and_time_to_finish(tmp_path: Path, name: str) -> None:
    with launched("-n", "3", script(tmp_path, HANDLES), patient="FINISH") as job:
        job.wait_for("ready", 3)
        job.signal(signal.Signals[name])
        assert job.finish() == 0
        assert job.out.count(f"got {name}") == 3
        assert job.out.count("finished") == 3


def test_sigusr1_and_sigusr2_reach_the_ranks_alone(tmp_path: Path) -> None:
    path = script(tmp_path, "child = subprocess.Popen(['sleep', '1000'])\n" + HANDLES)
    with launched("-n", "2", path, patient="FINISH") as job:
        job.wait_for("ready", 2)
        job.signal(signal.SIGUSR1)
        job.wait_for("got SIGUSR1", 2)
        job.signal(signal.SIGUSR2)
        job.wait_for("got SIGUSR2", 2)
        job.signal(signal.SIGINT)
        assert job.finish() == 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_ranks_without_a_handler_end_by_the_signal(tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    with launched("-n", "3", script(tmp_path, WAIT)) as job:
        job.wait_for("ready", 3)
        with soon():
            job.signal(number)
            assert job.finish() == 128 + number
        assert f"malt run: {name}: the ranks may finish" in job.err


def test_second_ctrl_c_kills(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        signal.signal(signal.SIGINT, lambda *_: print("not yet", flush=True))
        print("ready", flush=True)
        while True: signal.pause()
        """,
    )
    with launched("-n", "2", path) as job:
        job.wait_for("ready", 2)
        job.signal(signal.SIGINT)
        job.wait_for("not yet", 2)
        job.signal_again(signal.SIGINT)
        assert job.finish() == 128 + signal.SIGINT


def test_stopped_and_continued_with_the_ranks(tmp_path: Path) -> None:
    """Ctrl-Z and fg."""
    with launched("-n", "2", script(tmp_path, WAIT)) as job:
        pids = [int(pid) for pid in job.wait_for(r"ready (\d+)", 2)]
        job.signal(signal.SIGTSTP)
        os.waitid(os.P_PID, job.pid, os.WSTOPPED | os.WNOWAIT)
        deadline = time.monotonic() + LONG
        while {_state(pid) for pid in pids} != {"T"}:
            assert time.monotonic() < deadline
        job.signal(signal.SIGCONT)
        job.signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with launched("-n", "2", script(tmp_path, WAIT)) as job:
            job.wait_for("ready", 2)
            job.signal(signal.SIGHUP)
            job.signal(signal.SIGTERM)
            assert job.finish() == 128 + signal.SIGTERM
            assert "SIGHUP" not in job.err
    finally:
        signal.signal(signal.SIGHUP, before)


def test_reader_that_goes_away_ends_the_job(tmp_path: Path) -> None:
    path = script(tmp_path, "while True: print('line')")
    with launched("-n", "2", path) as job:
        job.wait_for("line", 1)
        assert job.process.stdout is not None
        job.process.stdout.close()
        assert job.process.wait(LONG) == 128 + signal.SIGPIPE


def test_reader_that_does_not_read_does_not_hide_a_death(tmp_path: Path) -> None:
    """The ranks wait with their output, but the launcher sees what becomes of them."""
    path = script(
        tmp_path,
        """
        print("ready", os.getpid(), flush=True)
        if r == 0:
            open(sys.argv[1]).close()  # a pipe: rank 1 has said that it is ready
            while True: print("line " * 100)
        open(sys.argv[1], "w").close()
        signal.pause()
        """,
    )
    os.mkfifo(tmp_path / "other")
    with launched("-n", "2", path, str(tmp_path / "other")) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"^\[(\d)\] ready (\d+)", 2)}
        job.wait_for("line")
        os.kill(pids[1], signal.SIGKILL)
        assert wait_for_end(pids[0])
        assert job.finish() == 128 + signal.SIGKILL
        assert re.search(r"\[0\] line.*\n\Z", job.out)


def test_failures_together_name_the_killed_one(tmp_path: Path) -> None:
    """Rank 1 fails because rank 2 was killed: whoever was noticed first, rank 2 is named."""
    path = script(
        tmp_path,
        """
        import select
        ready = sys.argv[1]
        if r == 2:
            with open(ready + ".tmp", "w") as file: file.write(str(os.getpid()))
            os.rename(ready + ".tmp", ready)
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
        while not os.path.exists(ready): time.sleep(0.01)
        watch = os.pidfd_open(int(open(ready).read()))
        select.select([watch], [], [])
        sys.exit(5)
        """,
    )
    for turn in range(5):
        done = run("-n", "3", path, str(tmp_path / f"ready{turn}"))
        assert done.process.returncode == 128 + signal.SIGKILL
        assert "rank 2 was killed by SIGKILL" in done.err.splitlines()[-1]
