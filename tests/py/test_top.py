"""``malt top``, ``malt stack`` and the events: what others see of ranks, and that ranks do not notice."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
import pytest
from documented import fields
from jobs import Job
from launching import LONG

import malt
from malt._cli import main, stack, top
from malt._ranks import seen, stacks

# Rank 1 stops in its third step until it gets a line.
SLOW = """
v = malt.Vector(100, name="w")
def wait():
    print("waits", flush=True)
    sys.stdin.readline()
for step in range(5):
    v.array[:] += 1
    if r == 1 and step == 2:
        wait()
    v.sync()
print(v.array[0])
"""

HIDE_RICH = "sys.modules['rich'] = None; "

CONTINUE = {"MALT_ON_DEATH": "continue"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank may get no processor time for a while."""
    monkeypatch.setattr(stacks, "PATIENCE", LONG)


def shown(job: Job) -> list[seen.Rank]:
    """Return what the ranks of a job show."""
    pids = {rank.process.pid for rank in job.ranks}
    return [rank for ranks in seen.jobs(seen.ranks()).values() for rank in ranks if rank.pid in pids]


def until(job: Job, fits: Callable[[list[seen.Rank]], bool]) -> list[seen.Rank]:
    """Look until what the ranks show fits, and return it."""
    deadline = time.monotonic() + LONG
    while not fits(ranks := shown(job)):
        assert time.monotonic() < deadline, ranks
    return ranks


def asleep(*numbers: int) -> Callable[[list[seen.Rank]], bool]:
    """Return whether these ranks have waited so long that this is worth a line."""
    return lambda ranks: [rank.rank for rank in ranks if rank.waited > 1] == list(numbers)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def facts(capsys: pytest.CaptureFixture[str], job: Job) -> dict[str, Any]:
    found = json.loads(said(capsys, "top", "--once", "--json", "--every", "0.1", str(job.ranks[0].process.pid)))
    assert len(found) == 1
    return dict(found[0])


def table(capsys: pytest.CaptureFixture[str], job: Job) -> str:
    return said(capsys, "top", "--once", "--every", "0.1", str(job.ranks[0].process.pid))


def printed(capsys: pytest.CaptureFixture[str], job: Job) -> str:
    return said(capsys, "stack", str(job.ranks[0].process.pid))


def test_a_slow_rank(capsys: pytest.CaptureFixture[str]) -> None:
    with Job(3, SLOW) as job:
        until(job, lambda ranks: asleep(0, 2)(ranks) and [rank.waits_for for rank in ranks] == [[1], [], [1]])
        found = facts(capsys, job)
        assert [rank["state"] for rank in found["ranks"]] == ["waiting", "computing", "waiting"]
        assert [rank["waits_for"] for rank in found["ranks"]] == [[1], [], [1]]
        assert [rank["clock"] for rank in found["ranks"]] == [2, 2, 2]
        assert found.keys() == fields("malt top --json", "a job")
        assert found["ranks"][0].keys() == fields("malt top --json", "a rank")
        (stack, *_) = json.loads(said(capsys, "stack", "--json", str(job.ranks[0].process.pid)))
        assert stack.keys() == fields("malt stack --json", "a rank")
        assert set(seen.Event._fields) == fields("malt top --events --json", "an event")
        assert re.match(r"ranks 0 and 2 have waited \S+ s for rank 1, in .*: v\.sync\(\)$", found["causes"][0])
        text = printed(capsys, job)
        assert "ranks 0 and 2: waiting\n  " in text
        assert ": v.sync()\nrank 1: computing\n" in text
        assert " in <module>: wait()\n" in text
        assert " in wait: sys.stdin.readline()\nranks 0 and 2 have waited" in text
        far = said(capsys, "stack", "-H", "localhost,127.0.0.1", str(job.ranks[0].process.pid))
        assert far.partition(" have waited")[0] == text.partition(" have waited")[0]
        job.ranks[1].say("")
        assert [rank.out.text.split()[-1] for rank in job.finish()] == ["5.0"] * 3
        assert shown(job) == []


def test_a_rank_that_is_a_little_slow_in_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    v = malt.Vector(100, name="w")
    while True:
        time.sleep(0.03 * (r == 1))
        v.sync()
    """
    with Job(3, script) as job:
        pid = str(until(job, lambda ranks: len(ranks) == 3 and all(rank.clock for rank in ranks))[0].pid)
        deadline = time.monotonic() + LONG
        named = re.compile("^ranks 0 and 2 wait .*% of the time for rank 1$", re.M)
        while not named.search(said(capsys, "top", "--once", pid)):
            assert time.monotonic() < deadline


def test_a_rank_that_comes_later_is_not_waited_for() -> None:
    """Rank 0 is asleep before rank 2 comes, which wakes no rank: rank 1 is waited for."""
    script = """
    v = malt.Vector(100, name="w")
    if r != 0:
        print("waits", flush=True)
        sys.stdin.readline()
    v.sync()
    """
    with Job(3, script) as job:
        until(job, lambda ranks: len(ranks) == 3 and ranks[0].waits_for == [1, 2])
        job.ranks[2].out.wait_for("waits")
        job.ranks[2].say("")
        until(job, lambda ranks: [rank.waits_for for rank in ranks] == [[1], [], [1]])
        job.ranks[1].out.wait_for("waits")
        job.ranks[1].say("")
        job.finish()


def test_ranks_in_different_calls(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    a, b = malt.Vector(10, name="a"), malt.Vector(10, name="b")
    if r == 0:
        a.sync()
    b.sync()
    """
    with Job(2, jobs.WARNS_EARLY + textwrap.dedent(script)) as job:
        until(job, lambda ranks: asleep(0, 1)(ranks) and all(rank.advice for rank in ranks))
        advice = (
            "Each rank must sync the same vectors in the same order. Does one rank skip a sync, or is it only slow?"
        )
        assert advice in facts(capsys, job)["causes"]
        assert [re.sub(r"\S+ s for (rank .),.*", r"\1", cause) for cause in facts(capsys, job)["causes"]][:2] == [
            "rank 0 has waited rank 1",
            "rank 1 has waited rank 0",
        ]
        text = printed(capsys, job)
        assert "rank 0: waiting\n" in text
        assert ": a.sync()\nrank 1: waiting\n" in text


def test_collective_calls_are_no_syncs_and_leave_the_clock_of_the_vector(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    v = malt.Vector(10)
    for _ in range(3):
        v.sync()
    malt.allreduce(1.0)
    print("synced", flush=True)
    if r == 1:
        sys.stdin.readline()
    malt.barrier()
    """
    with Job(2, textwrap.dedent(script)) as job:
        job.ranks[1].out.wait_for("synced")
        until(job, asleep(0))
        assert [(rank["clock"], rank["syncs"]) for rank in facts(capsys, job)["ranks"]] == [(3, 3), (3, 3)]
        job.ranks[1].say("")
        job.finish()


def test_a_stopped_rank(capsys: pytest.CaptureFixture[str]) -> None:
    with Job(2, SLOW) as job:
        job.ranks[1].out.wait_for("waits")
        until(job, asleep(0))
        job.ranks[1].signal(signal.SIGSTOP)
        ranks = until(job, lambda ranks: ranks[1].state == "stopped")
        assert f"kill -CONT {ranks[1].pid} resumes it" in table(capsys, job)
        assert "rank 1: stopped, by SIGSTOP or a debugger\n" in printed(capsys, job)
        job.ranks[1].signal(signal.SIGCONT)
        job.ranks[1].say("")
        job.finish()


def test_a_dead_rank(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    v = malt.Vector(10, consistency="bsp")
    v.sync()
    if r == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while malt.generation() == 1:
        malt.confirm()
    print("on", flush=True)
    sys.stdin.readline()
    """
    with Job(3, script, env={**CONTINUE, "MALT_EVENTS": "1000"}) as job:
        job.ranks[0].out.wait_for("on")
        job.ranks[2].out.wait_for("on")
        found = facts(capsys, job)
        assert [rank["dead"] for rank in found["ranks"]] == [[1], [1]]
        assert found["missing"] == [1]
        assert found["causes"] == ["rank 1 died; the others continue"]
        assert "rank 1 died; the others continue" in printed(capsys, job)
        deaths = [event for event in seen.Ring(shown(job)[0].pid).events()[0] if event.kind == "death"]
        assert [(event.ranks, event.value) for event in deaths] == [([1], 2.0)]
        for rank in (0, 2):
            job.ranks[rank].say("")
        assert [rank.process.returncode for rank in job.finish()] == [0, -9, 0]


def test_a_rank_that_waits_for_others_to_join(capsys: pytest.CaptureFixture[str]) -> None:
    with Job(1, "malt.barrier()", env={"MALT_SIZE": "2"}) as job:
        until(job, lambda ranks: [rank.state for rank in ranks] == ["joining"])
        assert " in <module>: r, n = malt.rank(), malt.size()\n" in printed(capsys, job)
        job.ranks[0].signal(signal.SIGTERM)


def test_a_rank_that_keeps_the_lock_of_the_interpreter_in_c(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    import faulthandler
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    malt.barrier()
    print("begins", flush=True); sum(range(10**15))
    """
    with Job(1, script) as job:
        job.ranks[0].out.wait_for("begins")
        assert "rank 0: computing\n" in (text := printed(capsys, job))
        assert "sum(range(10**15))\n" in text
        job.ranks[0].signal(signal.SIGUSR1)  # the program's own
        job.ranks[0].err.wait_for("most recent call first")


def test_names_that_are_not_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "größe\U0001f40d.py"
    line = "print('begins', flush=True); sys.stdin.readline()"
    path.write_text(f"import sys\ndef größe():\n    {line}\ngröße()\n", encoding="utf-8")
    with Job(1, f"import runpy\nmalt.barrier()\nrunpy.run_path({str(path)!r})") as job:
        job.ranks[0].out.wait_for("begins")
        assert f"  {path}:3 in größe: {line}\n" in printed(capsys, job)
        job.ranks[0].say("")
        job.finish()
    odd = r"\x0a\udc80\xzz"  # what no terminal shows, and what is none
    assert stacks.ESCAPED.sub(stacks._character, odd) == odd


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_other_users_see_nothing() -> None:
    code = """
    import os, sys
    from malt._ranks import seen
    pid, path = int(sys.argv[1]), sys.argv[2]
    assert pid in [rank.pid for rank in seen.ranks()]
    os.setuid(61234)
    assert pid not in [rank.pid for rank in seen.ranks()]
    for look in lambda: seen.Ring(pid), lambda: open(path, "rb"), lambda: os.kill(pid, 0):
        try:
            look()
        except PermissionError:
            print("refused")
    """
    with Job(1, "malt.barrier(); print('joined', flush=True); sys.stdin.readline()", env={"MALT_EVENTS": "9"}) as job:
        job.ranks[0].out.wait_for("joined")
        pid = job.ranks[0].process.pid
        where = [str(pid), seen.descriptor(pid, seen.MEMORY)[0]]
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *where], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("refused\n" * 3, "")


def test_more_ranks_than_there_may_be_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def hear(*_: Any) -> stacks.Answer:
        held.append(len(os.listdir("/proc/self/fd")))
        return stacks.Answer((), "heard")

    with Job(1, "malt.barrier(); print('joined', flush=True); sys.stdin.readline()") as job:
        job.ranks[0].out.wait_for("joined")
        (rank,) = shown(job)
        monkeypatch.setattr(stacks, "_hear", hear)
        monkeypatch.setattr(fcntl, "flock", lambda *_: None)  # it is the same one each time
        answers = stacks.ask([rank._replace(host=str(number)) for number in range(1000)])
        assert [answer.why for answer in answers.values()] == ["heard"] * 1000
        assert max(held) <= len(os.listdir("/proc/self/fd")) + 2 * stacks.TOGETHER
        job.ranks[0].say("")


def test_signals_that_the_program_uses(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    import os, signal, sys, malt
    signal.signal(signal.SIGRTMAX - 1, lambda *_: print("mine", flush=True))
    malt.barrier()
    print("joined", flush=True); sys.stdin.readline()
    signal.signal(signal.SIGRTMAX - 2, signal.SIG_DFL)
    print("taken", flush=True); sys.stdin.readline()
    """
    with Job(1, script, prelude=False) as job:
        rank = job.ranks[0]
        rank.out.wait_for("joined")
        assert ' in <module>: print("joined", flush=True); sys.stdin.readline()\n' in printed(capsys, job)
        rank.signal(signal.SIGRTMAX - 1)
        rank.out.wait_for("mine")
        rank.say("")
        rank.out.wait_for("taken")
        assert "uses signal" in printed(capsys, job)
        rank.say("")
        assert job.finish()[0].process.returncode == 0


def test_a_forked_child_is_no_rank_and_holds_nothing() -> None:
    script = """
    malt.barrier()
    child = os.fork()
    if child == 0:
        print("child", flush=True)
        sys.stdin.readline()
        os._exit(0)
    os.waitpid(child, 0)
    """
    with Job(1, script) as job:
        job.ranks[0].out.wait_for("child")
        pid = job.ranks[0].process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            child = int(file.read())
        links = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
        assert [link for link in links if "malt" in link] == []
        assert [rank.pid for rank in shown(job)] == [pid]
        job.ranks[0].say("")
        job.finish()


def test_a_program_without_python_stacks(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    malt.barrier()
    os.close(malt._lib.stacks._fd)  # as if it were a program in C
    print("joined", flush=True)
    sys.stdin.readline()
    """
    with Job(1, script) as job:
        job.ranks[0].out.wait_for("joined")
        assert "rank 0: computing; its program is not Python\n" in printed(capsys, job)


ATTACHED = """
import os, signal, sys
from malt._cli import main
counts = {"killed": 0, "terminated": 0, "ended": 0}
ways = {"ended": 0, "terminated": signal.SIGTERM, "killed": signal.SIGKILL}
for number in range(50):
    how = list(ways)[number % 3]
    shows, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, 1)
        os.close(shows)
        code = main(["top", *["--once"] * (how == "ended"), "--every", "0.05", sys.argv[1]])
        sys.stdout.flush()
        os._exit(code)
    os.close(writes)
    shown = b""
    while b"2 ranks" not in shown:
        more = os.read(shows, 1 << 16)
        assert more, shown
        shown += more
    if how != "ended":
        os.kill(child, ways[how])
    _, status = os.waitpid(child, 0)
    os.close(shows)
    counts[how] += os.waitstatus_to_exitcode(status) == -ways[how]
print(", ".join(f"{count} {how}" for how, count in counts.items()))
"""


def test_who_looks_changes_nothing() -> None:
    script = """
    v = malt.Vector(100)
    others = [malt.Vector(100, graph="ring", consistency=kind) for kind in ("async", "ssp:2", "notify-ack")]
    for step in range(20_000):
        v.array[:] += 0.25 * r
        v.sync()
        if step % 100 == 0:
            for other in others:
                other.array[:] += 1
                other.sync()
        if step in (100, 19_999):
            print(f"at {step}: {float(v.array[0])}", flush=True)
            sys.stdin.readline()
    """

    def held(pid: int) -> tuple[dict[str, str], list[str]]:
        """Return what a rank has open and maps of MALT: all vectors are made by then, and no rank waits."""
        with open(f"/proc/{pid}/maps") as file:
            mapped = [line.split(maxsplit=5)[-1] for line in file if "malt" in line]
        return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}, mapped

    with Job(2, script) as job:
        for rank in job.ranks:
            rank.out.wait_for("at 100")
        ranks = shown(job)
        before = [held(rank.pid) for rank in ranks]
        for rank in job.ranks:
            rank.say("")
        asked, command = 0, [sys.executable, "-c", textwrap.dedent(ATTACHED), str(ranks[0].pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attached:
            while attached.poll() is None or any("at 19999" not in rank.out.text for rank in job.ranks) or asked < 100:
                asked += 1
                answers = stacks.ask(ranks)
                assert [answers[rank.key].why for rank in ranks] == ["", ""]
                assert [rank.state for rank in shown(job)] != ["joining"] * 2
            assert attached.stdout is not None
            assert attached.stdout.read() == "16 killed, 17 terminated, 17 ended\n"
        assert [held(rank.pid) for rank in ranks] == before
        path, _ = seen.descriptor(ranks[0].pid, stacks.MEMORY)
        assert os.stat(path).st_size == 0
        for rank in job.ranks:
            rank.say("")
        values = {rank.out.text.split()[-1] for rank in job.finish()}
        assert values == {str(0.125 * 20_000)}


def test_events_and_how_many_are_lost(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    v = malt.Vector(10, name="w", consistency="async")
    malt.mark("epoch 1")
    malt.log(loss=0.5, accuracy=0.25)
    v.sync()
    malt.barrier()
    v.gather()
    print("first", flush=True)
    sys.stdin.readline()
    for _ in range(100):
        v.sync()
    print("second", flush=True)
    sys.stdin.readline()
    """
    with Job(2, script, env={"MALT_EVENTS": "64"}) as job:
        job.ranks[0].out.wait_for("first")
        rank = shown(job)[0]
        assert (rank.mark, rank.loss, rank.room) == ("epoch 1", 0.5, 64)
        ring = seen.Ring(rank.pid)
        events, lost = ring.events()
        assert lost == 0
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert [event.text for event in events if event.kind == "mark"] == ["epoch 1"]
        assert {event.text: event.value for event in events if event.kind == "log"} == {"loss": 0.5, "accuracy": 0.25}
        assert [event.text for event in events if event.kind == "call"][-3:] == ["w.sync", "malt.barrier", "w.gather"]
        assert {tuple(event.ranks) for event in events if event.kind in ("fold", "send", "wait")} == {(1,)}
        assert all(0 < event.begin < time.monotonic() and 0 <= event.seconds < LONG for event in events)
        job.ranks[0].say("")
        job.ranks[0].out.wait_for("second")
        later = shown(job)[0]
        events, lost = ring.events()
        assert lost == later.recorded - rank.recorded - 64 > 0
        assert [event.number for event in events] == list(range(later.recorded - 63, later.recorded + 1))
        text = said(capsys, "top", "--events", "--once", str(rank.pid))
        assert f"{later.recorded - 64} events were overwritten before they were read\n" in text
        assert "  w.sync\n" in text
        assert os.stat(seen.descriptor(rank.pid, seen.MEMORY)[0]).st_size == 4096 + 64 * 256
        for other in job.ranks:
            other.say("\n")


def test_what_json_and_terminals_do_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    script = """
    malt.mark("a\\n\\33[31m")
    malt.log(loss=float("nan"))
    print("logged", flush=True)
    sys.stdin.readline()
    """
    with Job(1, script, env={"MALT_EVENTS": "64"}) as job:
        job.ranks[0].out.wait_for("logged")
        pid = str(job.ranks[0].process.pid)
        text = said(capsys, "top", "--once", "--json", "--every", "0.1", pid)
        (found,) = json.loads(text, parse_constant=pytest.fail)
        assert found["ranks"][0]["loss"] == "nan"
        lines = said(capsys, "top", "--once", "--events", "--json", pid).splitlines()
        events = [json.loads(line, parse_constant=pytest.fail) for line in lines]
        assert [event["value"] for event in events if event["kind"] == "log"] == ["nan"]
        assert re.search(r" mark +a\?\?\[31m\n", said(capsys, "top", "--once", "--events", pid))
        job.ranks[0].say("")


def test_no_events_without_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with Job(1, "malt.barrier(); print('joined', flush=True); sys.stdin.readline()") as job:
        job.ranks[0].out.wait_for("joined")
        assert main(["top", "--events", str(job.ranks[0].process.pid)]) == 1
        assert "malt run --events 10000" in capsys.readouterr().err
        assert os.stat(seen.descriptor(job.ranks[0].process.pid, seen.MEMORY)[0]).st_size == 4096


def test_a_job_that_ends_while_it_is_watched() -> None:
    with Job(2, SLOW) as job:
        until(job, asleep(0))
        command = [sys.executable, "-m", "malt", "top", "--every", "0.1", str(job.ranks[0].process.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert " 2 ranks" in watching.stdout.readline()
            job.ranks[1].say("")
            job.finish()
            assert watching.stdout.read().endswith("The job has ended.\n")
        assert watching.returncode == 0


def test_a_terminal_in_colour_with_rich_and_plain_without() -> None:
    programs = [f"import sys; {hide}from malt._cli import main; main(sys.argv[1:])" for hide in ("", HIDE_RICH)]
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    with Job(2, SLOW) as job:
        until(job, asleep(0))
        watching = []
        for program in programs:
            screen, terminal = pty.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
            command = [sys.executable, "-c", program, "top", "--every", "0.1", str(job.ranks[0].process.pid)]
            process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env)
            os.close(terminal)
            watching.append((process, screen))
        shows = [b"", b""]
        for i, (_, screen) in enumerate(watching):
            while b" for 1" not in shows[i]:
                shows[i] += os.read(screen, 1 << 16)
        job.ranks[1].say("")
        job.finish()
        for i, (process, screen) in enumerate(watching):
            with contextlib.suppress(OSError):  # it has ended
                while piece := os.read(screen, 1 << 16):
                    shows[i] += piece
            os.close(screen)
            assert process.wait() == 0
    for shown in shows:
        assert shown.index(b"\x1b[?1049h") < shown.index(b" for 1") < shown.index(b"\x1b[?1049l")
    assert [bool(re.search(rb"\x1b\[33mwaits \S+ s for 1", shown)) for shown in shows] == [True, False]
    assert set(re.findall(rb"\x1b\[\d+m", shows[1])) == set()


def test_sigterm_gives_the_terminal_back() -> None:
    with Job(2, SLOW) as job:
        until(job, asleep(0))
        screen, terminal = pty.openpty()
        command = [sys.executable, "-m", "malt", "top", "--every", "0.1", str(job.ranks[0].process.pid)]
        process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        shown = b""
        while b" for 1" not in shown:
            shown += os.read(screen, 1 << 16)
        process.terminate()
        with contextlib.suppress(OSError):  # it has ended
            while piece := os.read(screen, 1 << 16):
                shown += piece
        os.close(screen)
        assert process.wait() == 128 + signal.SIGTERM
        assert shown.endswith(b"\x1b[?25h\x1b[?1049l")
        job.ranks[1].say("")
        job.finish()


def test_a_job_of_slurms() -> None:
    own = {"MALT_SIZE": "", "MALT_STORE": "", "MALT_TOKEN": "", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "3"}
    step = {"SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "MALT_RANK": ""}
    with Job(1, "malt.barrier(); print('joined', flush=True); sys.stdin.readline()", env={**own, **step}) as job:
        job.ranks[0].out.wait_for("joined")
        assert [(rank.rank, rank.size, rank.state) for rank in shown(job)] == [(0, 1, "computing")]


def test_nothing_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(seen, "ranks", list)
    for command in ("top", "stack"):
        assert main([command]) == 2
        assert "no ranks of this user run on this machine" in capsys.readouterr().err
    assert main(["top", "5eed"]) == 2
    assert "there is no job '5eed'" in capsys.readouterr().err


def rank_of_many(number: int, waits_for: list[int]) -> seen.Rank:
    """Return rank `number` of 64, as it would show itself."""
    return seen.Rank(
        rank=number, size=64, near=64, job="5eed", host="node1", pid=4_194_000 + number,
        command="train.py --epochs 100 " * 9, cwd="/", memory=1 << 33, signals=0, doing=0,
        state="waiting" if waits_for else "computing", waits_for=waits_for,
        waited=4.0 if waits_for else 0.0, slept=4.0, late=waits_for, syncs=10**6, bytes=10**11,
        clock=10**9, age=-3, loss=-1.2345e-05, mark="epoch 3", place="train.py:12: v.sync()", advice="", dead=[],
        room=0, recorded=0, at=1.0, joined=0.5,
    )  # fmt: skip


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    ranks = [rank_of_many(number, [] if number % 2 else [*range(1, 64, 2)]) for number in range(64)]
    old = [rank._replace(syncs=0, bytes=0, at=0.5) for rank in ranks]
    lines = list(top._table({"5eed": ranks}, {"5eed": old}, 80))
    assert [line for line in lines if len(line) > 80] == []
    assert len(lines) > 64
    assert all(rank.loss is not None and f"{rank.pid}" in lines[rank.rank - 65] for rank in ranks)
    assert re.fullmatch(r"0  4194000  waits 4.*…  .*", lines[-65].strip())


def test_the_ranks_of_several_hosts() -> None:
    ranks = [rank_of_many(number, [])._replace(host=f"node{number % 2}", near=32) for number in range(64)]
    ranks[3] = ranks[3]._replace(state="stopped")
    lines = list(top._table({"5eed": ranks}, {}, 80))
    assert lines[0].startswith("job 5eed on 2 hosts: 64 ranks: train.py")
    assert lines[1] == "rank 3 is stopped, by SIGSTOP or a debugger: kill -CONT 4194003 on node1 resumes"
    heads = [lines.index(f"on node{host}:") for host in range(2)]
    assert [line.split()[0] for line in lines[heads[0] + 1 : heads[1]]] == [str(rank) for rank in range(0, 64, 2)]
    assert top.missing(ranks[:-2]) == [62, 63]
    assert top.title("5eed", ranks[::2], 80).startswith("job 5eed on node0: 64 ranks, 32 of them there: train.py")


def test_ranks_at_one_place_and_what_each_does() -> None:
    ranks = [rank_of_many(number, [1] * (number != 1)) for number in range(3)]
    same = dict.fromkeys((rank.key for rank in ranks), stacks.Answer((stacks.Frame("train.py", 3, "<module>", ""),)))
    assert list(stack._shown(ranks, same)) == [
        "ranks 0-2: ranks 0 and 2 waiting, rank 1 computing",
        "  train.py:3 in <module>",
    ]
    assert next(stack._shown(ranks[:1], same)) == "rank 0: waiting"


def test_an_unfit_value() -> None:
    with pytest.raises(TypeError, match="loss='low'\nexpected a number"):
        malt.log(loss="low")  # type: ignore[arg-type]
