"""The launcher itself: what no command line can provoke."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import LONG, launched, soon, wait_for_end

from malt._ranks import launch
from malt._ranks.launch import Job
from malt._ranks.rank import Outcome, Rank
from malt._ranks.report import SPENT


class Output:
    """Collects what the ranks write."""

    def __init__(self) -> None:
        self.text: dict[tuple[int, int], bytes] = {}
        self.ended: list[tuple[int, int]] = []

    def __call__(self, rank: int, stream: int, piece: bytes) -> None:
        self.text[rank, stream] = self.text.get((rank, stream), b"") + piece
        if not piece:
            self.ended.append((rank, stream))


@pytest.fixture(autouse=True)
def no_descriptors_left() -> Iterator[None]:
    before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == before


def shell(job: Job, text: str) -> Rank:
    return job.start(["sh", "-c", text], os.environ)


def test_output_ends_once_for_each_stream() -> None:
    output = Output()
    with Job(output) as job:
        for _ in range(3):
            shell(job, "echo out; echo err >&2")
        assert job.wait()
    assert output.text == {(r, s): {1: b"out\n", 2: b"err\n"}[s] for r in range(3) for s in (1, 2)}
    assert sorted(output.ended) == sorted(output.text)
    assert job.close() == [], "a second close does nothing"


@pytest.mark.parametrize("pidfd", [True, False])
def test_leaving_the_job_ends_it(monkeypatch: pytest.MonkeyPatch, pidfd: bool) -> None:
    if not pidfd:  # as on Linux before 5.3: a thread waits for each rank
        monkeypatch.delattr(os, "pidfd_open")
    with Job(Output()) as job:
        ranks = [shell(job, "trap '' TERM; sleep 1000 & wait") for _ in range(3)]
        assert not job.wait(time.monotonic() + 0.1)
    assert all(rank.process.returncode == -signal.SIGKILL for rank in ranks)


def test_failing_output_leaves_nothing_running() -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    job = Job(full)
    rank = shell(job, "echo; sleep 1000")
    with pytest.raises(OSError, match="No space"), job:
        job.wait()
    assert rank.process.returncode == -signal.SIGKILL


def test_program_that_does_not_exist_leaves_nothing() -> None:
    with Job(Output()) as job:
        first = shell(job, "sleep 1000")
        with pytest.raises(FileNotFoundError):
            job.start(["/no/such/program"], os.environ)
    assert first.process.returncode == -signal.SIGKILL


def test_rank_that_cannot_be_watched_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[int] = []

    def too_many(pid: int) -> int:
        watched.append(pid)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(launch, "watch", too_many)
    with Job(Output()) as job, pytest.raises(OSError, match="Too many"):
        shell(job, "sleep 1000")
    assert job.ranks == []
    assert wait_for_end(watched[0], 0)


def test_rank_that_somebody_else_reaps_is_let_go() -> None:
    """A library in the caller's process may wait for any child."""
    with Job(Output()) as job:
        rank = shell(job, "exit 3")
        os.waitid(os.P_PID, rank.pid, os.WEXITED)
        assert job.wait()
        assert rank.lost
        assert job.first_failure() is None


def test_a_forked_child_that_holds_every_pipe_holds_nothing_up() -> None:
    """Another thread of the caller's may fork at any moment."""
    with Job(Output()) as job:
        shell(job, "sleep 0.2")
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        try:
            with soon():
                assert job.wait()
                job.close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_guard_kills_though_somebody_holds_its_pipe(tmp_path: Path) -> None:
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import os, signal, time\n"
        "from malt._ranks.launch import Job\n"
        "with Job(lambda *_: None) as job:\n"
        "    rank = job.start(['sh', '-c', 'sleep 1000 & wait'], os.environ)\n"
        "    child = os.fork()\n"
        "    if child == 0: time.sleep(1000)\n"
        "    print('pids', rank.pid, child, flush=True)\n"
        "    job.wait()\n"
    )
    with launched(command=[sys.executable, str(launcher)]) as caller:
        ((rank, child),) = caller.wait_for(r"pids (\d+) (\d+)")
        try:
            caller.signal(signal.SIGKILL)
            assert wait_for_end(int(rank)), "not by the parent-death signal: it was not asked for"
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_paused_output_is_not_lost_when_the_ranks_end() -> None:
    output = Output()
    with Job(output) as job:
        shell(job, "echo text")
        job.pause(True)
        assert not job.wait(time.monotonic() + 2 * launch.DRAIN)
        assert output.text == {}
        job.pause(False)
        assert job.wait()
    assert output.text[0, 1] == b"text\n"


def report(*lines: str) -> str:
    """Return a Python program that writes these lines to its launcher."""
    text = "".join(line + "\n" for line in lines)
    return f"import os; os.write(int(os.environ['MALT_REPORT'].split(':')[0]), {text.encode()!r})"


def python(job: Job, text: str) -> Rank:
    return job.start([sys.executable, "-S", "-c", text], os.environ)


def test_first_failure_is_the_cause_though_it_ends_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "FAIL", LONG)
    said = tmp_path / "said"
    now = time.monotonic()
    cause = f'{{"failed": "KeyError", "peer": null, "time": {now}}}'
    gone = f'{{"failed": "PeerError", "peer": {{"rank": null, "kind": null}}, "time": {now - 1}}}'
    with Job(Output()) as job:
        shell(job, "sleep 1000")
        slow = python(job, f"{report(cause)}; open({str(said)!r}, 'w').close(); import time; time.sleep(1000)")
        quick = python(job, f"import os\nwhile not os.path.exists({str(said)!r}): pass\n{report(gone)}; os._exit(7)")
        assert not job.wait(enough=lambda: quick.status is not None)
        job.stop()
        assert job.wait()
    assert job.first_failure() is slow
    assert (slow.code, slow.fate()) == (1, "failed with KeyError")
    assert (quick.code, quick.fate()) == (7, "failed with PeerError")


def test_an_exit_code_of_which_the_others_hear_nothing_stops_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "FAIL", 2 * LONG)
    joined = report('{"survives": 1}')
    with soon(), Job(Output()) as job:
        python(job, f"{joined}; import time; time.sleep({2 * LONG})")
        failed = python(job, f"{joined}; os._exit(3)")
        assert job.wait()
    assert job.first_failure() is failed


def test_a_rank_that_failed_before_the_user_asked_has_failed() -> None:
    with Job(Output()) as job:
        rank = Outcome(0)
        job.failed(rank)
        job.ask(signal.SIGTERM, group=False)
        job.failed(rank)  # as each look at all ranks says
        assert not rank.asked
        later = Outcome(1)
        job.failed(later)
        assert later.asked


@pytest.mark.parametrize("leaves", [True, False])
def test_a_rank_that_leaves_while_it_is_looked_at_has_not_died(
    leaves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    joined = report('{"survives": 1}')
    last = report('{"left": true}') if leaves else ""
    look = Rank.look

    def once(rank: Rank) -> None:
        if rank.number == 1:
            monkeypatch.setattr(Rank, "look", look)
            fifo.write_text("")
            os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)
        look(rank)

    with Job(Output()) as job:
        ranks = [
            python(job, f"{joined}; import time; time.sleep(1000)"),
            python(job, f"{joined}; open({str(fifo)!r}); {last}"),
        ]
        assert not job.wait(enough=lambda: all(rank.least for rank in ranks))
        monkeypatch.setattr(Rank, "look", once)
        job.judge()
        assert (ranks[1].status, ranks[1].died is None) == (0, leaves)


def test_a_process_that_fails_as_it_takes_a_place_blames_nobody() -> None:
    joined = report('{"meets": 0}', '{"survives": 1}')
    gone = '{"failed": "PeerError", "peer": {"rank": 1, "kind": "ended"}, "time": 1.0}'
    with Job(Output()) as job:
        lives, dead = (python(job, f"{joined}; import time; time.sleep(1000)") for _ in range(2))
        assert not job.wait(enough=lambda: bool(lives.least and dead.least))
        os.kill(dead.pid, signal.SIGKILL)
        assert not job.wait(enough=lambda: dead.died is not None)
        late = job.start([sys.executable, "-S", "-c", report(gone)], os.environ, number=0, restart=1)
        assert not job.wait(enough=lambda: late.died is not None)
        assert (late.fate(), dead.needed, job.first_failure()) == ("failed with PeerError", False, None)


def test_a_rank_that_ends_well_after_the_others_had_gone_on_without_it() -> None:
    joined = '{"meets": 0}', '{"survives": 1}'
    with Job(Output()) as job:
        python(job, f"{report(*joined)}; import time; time.sleep(1000)")
        out = python(job, report(*joined, '{"expelled": true}'))
        assert not job.wait(enough=lambda: out.died is not None)
        assert out.fate() == "ended, after the others had gone on without it (exit code 0)"


TIMES = {**dict.fromkeys(SPENT, 1.0), "waited": {"1": 0.5}, "deaths": {}, "longest": [0.0, ""]}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "[1]",
        "3",
        '"failed"',
        '{"failed": 1}',
        '{"failed": "x", "peer": null, "time": "y"}',
        '{"failed": "x", "peer": null, "time": 1' + "0" * 400 + "}",
        '{"summary": 3}',
        '{"summary": {"wall": 1}}',
        json.dumps({"summary": TIMES | {"longest": []}}),
        json.dumps({"summary": TIMES | {"waited": 3}}),
        json.dumps({"summary": TIMES | {"deaths": {"x": 1}}}),
        "[" * 30_000,
        "x" * 100_000,
    ],
)
def test_reports_that_are_none_do_no_harm(line: str) -> None:
    with Job(Output()) as job:
        rank = python(job, report(line, json.dumps({"summary": TIMES})))
        assert job.wait()
    assert (rank.status, rank.failed) == (0, None)
    assert json.loads(json.dumps(rank.summary)) == TIMES


def test_failure_reported_after_the_stop_is_no_news() -> None:
    rank = Rank.__new__(Rank)
    rank.failed, rank.failure, rank.summary, rank.expelled, rank._begun = None, None, None, False, b""
    rank.start, rank.least = 0, None
    assert not rank.hear(b'{"failed": "x", "peer": null, "time": 5.0}\n', stopped=4.0)
    assert rank.hear(b'{"failed": "x", "peer": null, ', stopped=None) is False
    assert rank.hear(b'"time": 5.0}\n', stopped=6.0) is True
