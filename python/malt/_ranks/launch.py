"""Starts the ranks of a job and watches them until the last one has ended.

Used by ``malt run``, which shows what the ranks write, and by ``malt.run``,
which fetches what a function returns. Everything is driven by one selector:
the output of the ranks, their reports, their ends and a few deadlines.

Lifetimes
---------
Each rank leads a session and process group of its own, so that its children
can be signalled with it. A rank that has ended stays a zombie until the job is
closed: so neither its process id nor its group can have been given to somebody
else, and no signal ever reaches a stranger.

When the launcher itself is killed, the guard (``guard.py``) kills the groups, and
the kernel kills the ranks (``_parent``). When it raises, `Job.close` does.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from malt._ranks.machine import threads
from malt._ranks.processes import members, start_guard, watch
from malt._ranks.rank import Outcome, Pipe, Rank, first_failure, successors

J = TypeVar("J", bound="Job")

GRACE = 0.4
"""Seconds from SIGTERM to SIGKILL when a job is stopped."""

FAIL = 1.0
"""Seconds in which the others may fail over a rank's failure, each in its own words, before the job is stopped."""

FINISH = 5.0
"""The same, once a rank has ended by a signal that the user sent."""

DRAIN = 0.5
"""Seconds in which children that outlive the ranks may still write."""

DEAD = 5.0
"""Seconds after SIGKILL at which a rank is given up: it hangs in the kernel."""

# The order in which things that are ready together are looked at: what a rank has
# said comes before its end.
_REPORT, _OUTPUT, _OTHER, _END = range(4)


WITNESS = (sys.executable, "-m", "malt._cli.witness")
"""The program that votes for a host without ranks."""


def numbered(counts: Sequence[int]) -> list[range]:
    """Return the numbers of the processes of each host, of which so many are ranks; one without ranks has a witness.

    Examples
    --------
    >>> numbered([2, 0, 1])
    [range(0, 2), range(3, 4), range(2, 3)]
    """
    first, witness = 0, sum(counts)
    numbers = []
    for count in counts:
        numbers.append(range(first, first + count) if count else range(witness, witness + 1))
        first, witness = first + count, witness + (not count)
    return numbers


def program_environment(size: int) -> dict[str, str]:
    """Return this process's environment, with what suits each of `size` programs that share the machine."""
    env = dict(os.environ)
    env.update(threads(size, env))
    env.setdefault("PYTHONUNBUFFERED", "1")  # what a rank prints is to be seen while it runs
    env.setdefault("PYTHONFAULTHANDLER", "1")  # a crash in compiled code ends with the lines of Python that led to it
    return env


def job_environment(size: int, on_death: str | None = None) -> dict[str, str]:
    """Return the environment of the ranks of a new job on this machine, less what is each rank's own.

    That is MALT_RANK. The name of the job cannot be guessed,
    and the token is what keeps strangers out of it.
    """
    told = {} if on_death is None else {"MALT_ON_DEATH": on_death}
    return program_environment(size) | meeting(size, f"local:{os.urandom(16).hex()}", os.urandom(16).hex()) | told


def meeting(size: int, store: str, token: str, together: str = "", witnesses: int = 0) -> dict[str, str]:
    """Return the variables that tell ranks how many they are, where they meet, and which of them start together."""
    told = {"MALT_SIZE": str(size), "MALT_STORE": store, "MALT_TOKEN": token, "MALT_TOGETHER": together}
    return {**told, "MALT_WITNESSES": str(witnesses)}


class Job:
    """The processes of one job.

    Parameters
    ----------
    output : callable
        Called with (rank, 1 for stdout or 2 for stderr, bytes) for what the
        ranks write; with empty bytes once, when nothing more can come.
    preexec : callable, optional
        Run in each new process between fork and exec. Only for a launcher
        without other threads.
    told : callable, optional
        Called with a rank that leaves it to the launcher to show its traceback (`Rank.words`); by default
        that is output.

    Notes
    -----
    A context manager: leaving it ends and reaps every process, whatever has
    happened. Not for use by several threads at once.
    """

    def __init__(
        self,
        output: Callable[[int, int, bytes], None],
        preexec: Callable[[], None] | None = None,
        told: Callable[[Rank], None] | None = None,
    ) -> None:
        self.ranks: list[Rank] = []
        self.outcomes: Sequence[Outcome] = self.ranks
        """What has become of the ranks, wherever they run: others than these processes, where these lead to hosts."""
        self.elsewhere = 0
        """How many ranks of the job others have started, who look after them."""
        self.asked: float | None = None
        """When the user asked the ranks to end, in time.monotonic(): once one has, the others get longer to."""
        self.stopped: float | None = None
        """When the job was stopped: what ends after that ends because of it."""
        self.mourn: Callable[[Outcome, Sequence[Outcome]], None] = lambda *_: None
        """Called with a rank that has ended, where the others go on, and with those of them that still run."""
        self.replace: Callable[[Rank], None] = lambda _: None
        """Called with a rank without which the others go on: it may start another one in its place."""
        self.returned: Callable[[Rank], None] = lambda _: None
        """Called with a rank that was started in the place of another, once the others count on it."""
        self.warned: Callable[[Outcome, str, str], None] = lambda rank, text, _: self._put_out(rank, text)
        """Called with a rank that leaves a warning to the launcher: its text, and what is the same on other ranks."""
        self.recording: Callable[[Rank], None] = lambda _: None
        """Called with a rank that has joined and records events."""
        self._begun = time.monotonic()
        self._output = output
        self._preexec = preexec
        self._told = told or (lambda rank: self._put_out(rank, (rank.words or {})["text"]))
        # poll rather than epoll, since a watched descriptor may be a regular file.
        self._selector = selectors.PollSelector()
        self._outputs: list[Pipe] = []
        self._reports: list[Pipe] = []
        self._running = 0
        self._paused = False
        self._killed = False
        self._gave_up = False
        self._closed = False
        self._stop_at: float | None = None
        self._kill_at: float | None = None
        self._drain_at: float | None = None
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self: J) -> J:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:  # perhaps from the output itself
            self._output = lambda *_: None
        self.close()

    # ------------------------------------------------------------------ starting

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        pass_fds: Iterable[int] = (),
        stdin: int = subprocess.DEVNULL,
        enter: Callable[[], None] | None = None,
        number: int | None = None,
        size: int = sys.maxsize,
        cores: Iterable[int] = (),
        restart: int = 0,
    ) -> Rank:
        """Start the next rank.

        Parameters
        ----------
        argv, env, pass_fds, stdin
            As of `subprocess.Popen`.
        enter : callable, optional
            Run in the new process before `preexec`, if that is given: it may make
            the process another user's, who would not be told of a parent's end.
        number : int, optional
            The rank's; by default they are counted, from 0.
        size : int, optional
            How many ranks the job has: a number from there on is that of a witness, which does not
            run `argv`.
        cores : iterable of int, optional
            The hardware threads that the rank may use; by default those of this process.
        restart : int, optional
            The number of the start after a death; by default it is none.

        Raises
        ------
        OSError
            The program could not be started, or there are too many of them.
        """
        if self._guard is None:
            self._start_guard()
        number = len(self.ranks) if number is None else number
        ours: list[int] = []
        theirs: list[int] = []

        bind = partial(os.sched_setaffinity, 0, cores) if cores else None
        steps = [step for step in (enter, bind, self._preexec) if step is not None]

        def prepare() -> None:
            for step in steps:
                step()

        try:
            for _ in range(3):
                reader, writer = os.pipe()
                ours.append(reader)
                theirs.append(writer)
            process = subprocess.Popen(
                WITNESS if number >= size else argv,
                env={**env, "MALT_REPORT": _channel(theirs[0]), **({"MALT_RESTART": str(restart)} if restart else {})},
                stdin=stdin,
                stdout=theirs[1],
                stderr=theirs[2],
                pass_fds=(theirs[0], *pass_fds),
                start_new_session=True,
                preexec_fn=prepare if steps else None,
            )
            ours.append(_watch_or_kill(process))
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        rank = Rank(number, process)
        rank.witness = number - size if number >= size else None
        rank.start = restart
        return self._add(rank, *ours)

    def _add(self, rank: Rank, report: int, out: int, err: int, end: int) -> Rank:
        self.ranks.append(rank)
        self._running += 1
        self._tell_guard(b"%d\n" % rank.pid)
        self._reports.append(Pipe(report, partial(self._hear, rank), self._drop))
        self._watch(report, _REPORT, self._reports[-1])
        for stream, fd in ((1, out), (2, err)):
            pipe = Pipe(fd, partial(self._show, rank.number, stream), self._drop)
            self._outputs.append(pipe)
            rank.outputs.append(pipe)
            self._watch(fd, _OUTPUT, pipe)
        self._watch(end, _END, lambda: self._ended(rank, end))
        return rank

    def _show(self, rank: int, stream: int, piece: bytes) -> None:
        self._output(rank, stream, piece)

    def _hear(self, rank: Rank, piece: bytes) -> None:
        before, known, waited, met = rank.words, rank.records, rank.waits, rank.meets
        failed = rank.hear(piece, self.stopped)
        if waited and not rank.waits:
            self.returned(rank)
        if rank.records != known:
            self.recording(rank)
        if rank.meets != met:
            self.blame()
        if rank.words is not before or rank.warnings:
            self.drain(rank)  # what it wrote before that
        for warning in rank.warnings:
            self.warned(rank, *warning)
        rank.warnings.clear()
        if rank.words is not before:
            self._told(rank)
        if failed:
            # It is about to end. Should it hang on its way, it is stopped.
            self._stop_soon()

    def _put_out(self, rank: Outcome, text: str) -> None:
        """Show a text as if the rank had printed it."""
        self._output(rank.number, 2, text.encode(errors="replace"))

    def _drop(self, pipe: Pipe) -> None:
        """Do without a pipe that has ended, or is given up."""
        if pipe in self._reports:
            self._reports.remove(pipe)
            self.forget(pipe.fd)
        else:
            self._outputs.remove(pipe)
            if not self._paused:
                self.forget(pipe.fd)
            pipe.take(b"")
        pipe.close()

    def _start_guard(self) -> None:
        self._guard = start_guard(b"".join(b"%d\n" % rank.pid for rank in self.ranks if not rank.lost))
        end = _watch_or_kill(self._guard)
        self._watch(end, _END, partial(self._guard_ended, end))

    def _guard_ended(self, end: int) -> None:
        """Start another guard where somebody has killed this one; one that fails by itself would fail again."""
        self.forget(end)
        os.close(end)
        guard = self._guard
        assert guard is not None
        assert guard.stdin is not None
        guard.stdin.close()
        if guard.wait() < 0:
            with contextlib.suppress(OSError):
                self._start_guard()

    def _tell_guard(self, text: bytes) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError, ValueError):  # somebody has killed the guard
                self._guard.stdin.write(text)

    # ------------------------------------------------------------------ watching

    def watch(self, fd: int, call: Callable[[], None], write: bool = False) -> None:
        """Call whenever fd can be read, or written, until `forget`."""
        self._watch(fd, _OTHER, call, write)

    def _watch(self, fd: int, order: int, call: Callable[[], None], write: bool = False) -> None:
        event = selectors.EVENT_WRITE if write else selectors.EVENT_READ
        self._selector.register(fd, event, (order, call))

    def forget(self, fd: int) -> None:
        """Stop watching fd."""
        self._selector.unregister(fd)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call once so many seconds have passed, while `wait` runs."""
        self._due.append((time.monotonic() + seconds, call))

    def pause(self, paused: bool) -> None:
        """Leave the output of the ranks in their pipes, so that they wait for us."""
        if paused == self._paused:
            return
        self._paused = paused
        for pipe in self._outputs:
            if paused:
                self.forget(pipe.fd)
            else:
                self._watch(pipe.fd, _OUTPUT, pipe)
        if self._drain_at is not None:
            self._drain_at = time.monotonic() + DRAIN

    def drain(self, rank: Rank) -> None:
        """Take what a rank has written up to now: no more than that fits into a pipe."""
        for pipe in rank.outputs:
            if pipe in self._outputs:
                pipe()

    def wait(self, until: float | None = None, enough: Callable[[], bool] = lambda: False) -> bool:
        """Serve what happens until all ranks have ended and their output is read.

        Parameters
        ----------
        until : float, optional
            The time.monotonic() at which to come back all the same.
        enough : callable, optional
            Asked after whatever happens: True comes back all the same.

        Returns
        -------
        bool
            False if one of these came first.
        """
        while self._running or self._outputs:
            if enough():
                return False
            now = time.monotonic()
            if self._stop_at is not None and now >= self._stop_at:
                self._stop_at = None
                self.stop()
            if self._kill_at is not None and now >= self._kill_at:
                self.kill()
            for entry in [entry for entry in self._due if now >= entry[0]]:
                self._due.remove(entry)
                entry[1]()
            drain = None if self._paused else self._drain_at
            if drain is not None and now >= drain:
                self._serve(now)  # what is in the pipes; more than that is not waited for
                self._gave_up = self._running > 0
                return True
            if until is not None and now >= until:
                return False
            self._serve(self._stop_at, self._kill_at, drain, until, *(at for at, _ in self._due))
        return True

    def poll(self) -> None:
        """Serve what has happened by now."""
        self._serve(time.monotonic())

    def _serve(self, *deadlines: float | None) -> None:
        """Wait for something to happen, until the nearest deadline, and see to it."""
        near = min((d for d in deadlines if d is not None), default=None)
        ready = self._selector.select(None if near is None else max(0.0, near - time.monotonic()))
        for key, _ in sorted(ready, key=lambda event: event[0].data[0]):
            now = self._selector.get_map().get(key.fd)
            if now is not None and now.data is key.data:  # not ended by one before it
                key.data[1]()

    # -------------------------------------------------------------------- ending

    def _ended(self, rank: Rank, end: int) -> None:
        self.forget(end)
        os.close(end)
        self._running -= 1
        if self.stopped is None:
            self.judge()
        else:
            rank.look()
        self._dismiss()
        if self._running == 0:
            self._drain_at = time.monotonic() + DRAIN

    def judge(self) -> None:
        """Note who has failed up to now; the first failure stops the job.

        All ranks are looked at, not only the one whose end was noticed: where a
        rank dies, others may fail over it before its own end is seen here.
        """
        self._hear_all()
        now = time.monotonic()
        for rank in self.ranks:
            rank.look()
        if any(rank.vanished for rank in self.ranks):
            self._hear_all()  # one may have left and ended since
        for rank in list(self.ranks):
            if (rank.status or rank.vanished) and rank.died is None and self.do_without(rank, now):
                self._signal(rank, signal.SIGTERM)  # its children, which nobody needs any more
                if self._takers():
                    self.replace(rank)
        self.blame()

    def blame(self) -> None:
        """Note that ranks have failed whose end others fail over, or that others wait for as they join.

        By itself their end may be no failure: an exit code of 0, or a death after which those of this machine go on.
        """
        peers = [one.failure["peer"] for one in self.outcomes if one.failed is not None and one.failure is not None]
        gone = {peer["rank"] for peer in peers if peer is not None and peer["kind"] == "ended"}
        size = self.elsewhere + sum(one.witness is None and not one.start for one in self.outcomes)
        joining = any(one.meets == size and one.status is None for one in self.outcomes)
        for one in self.outcomes:
            missed = joining and one.meets != 0 and one.witness is None and not one.start
            blamed = one.number in gone and not successors(one, self.outcomes)
            if one.status is not None and not (one.failed or one.left) and (blamed or missed):
                one.needed = True
                self.failed(one, one.died)

    def _hear_all(self) -> None:
        for report in list(self._reports):
            report()

    def lose(self, ranks: Iterable[Rank]) -> None:
        """Count it as no failure that ranks are about to be killed with their host; what has ended before counts."""
        self.judge()
        now = time.monotonic()
        for rank in ranks:
            if rank.status is None:
                rank.died, rank.lived = now, now - self._begun

    def do_without(self, rank: Outcome, ended: float) -> bool:
        """Have the others go on without a rank that has ended, or note that it has failed.

        One that has failed may be spared later, when another rank has said that the job goes on.
        """
        rank.lived = rank.lived or ended - self._begun
        if not self._can_be_spared(rank):
            if rank.status:
                self.failed(rank, ended)
            return False
        if rank.failed is not None:
            rank.failed = self._stop_at = None
        rank.died = ended
        self.mourn(rank, self._takers())
        return True

    def failed(self, rank: Outcome, when: float | None = None) -> None:
        """Note that a rank has failed; the first failure stops the job. Ranks found ended in one look get one time."""
        rank.failed = rank.failed or when or time.monotonic()
        rank.asked = self.asked is not None and rank.failed >= self.asked
        if self.stopped is None:
            left = [other for other in self.outcomes if other.status is None]
            unheard = rank.lost and all(other.least is None for other in left)  # one may yet say that the job goes on
            self._stop_soon(unheard)
            if self._unnoticed(rank):
                self._stop_at = time.monotonic()

    def _unnoticed(self, rank: Outcome) -> bool:
        """Tell whether the others would take the end of a rank that stops the job for a death, and go on after it."""
        told = rank.failure is not None or any(other.least == 0 for other in self.outcomes)
        return bool(rank.status) and not (told or rank.spared or self.asked) and self.least > 0

    def _takers(self) -> list[Outcome]:
        """Return the ranks that go on."""
        return [other for other in self.outcomes if other.status is None and not other.waits]

    def _can_be_spared(self, rank: Outcome) -> bool:
        """Tell whether the others go on without a rank that has ended: one has said so, and none otherwise."""
        left = [other for other in self.outcomes if not (other.status or other.vanished or other.waits)]
        known = [rank, *left] if not rank.waits else left
        # One that has joined has met all. With the launcher of its host a rank may end before we hear that it has.
        ready = all(other.least != 0 for other in known if other.status != 0 and other.witness is None)
        failed = any(other.failed is not None and not other.spared for other in self.outcomes)
        ending = rank.witness is None and (self.asked or self.stopped is not None or failed)
        ranks = self.elsewhere + sum(other.witness is None for other in left)
        return rank.spared and not ending and ready and 0 < self.least <= ranks

    def _dismiss(self) -> None:
        """Give witnesses a moment to end, once no rank runs: they may not see it of a host that is silent."""
        running = [other for other in self.outcomes if other.status is None]
        if running and self.stopped is None and not self.elsewhere and all(o.witness is not None for o in running):
            self._stop_soon()

    @property
    def least(self) -> int:
        """With how many ranks the job goes on, as the ranks have said when they joined; 0: a death ends it."""
        return max((rank.least or 0 for rank in self.outcomes), default=0)

    def _stop_soon(self, unheard: bool = False) -> None:
        """Stop the job, unless all ranks end before; the first failure counts."""
        if self._stop_at is None:
            self._stop_at = time.monotonic() + (FINISH if self.asked or unheard else FAIL)

    def deaths(self) -> list[Outcome]:
        """Return the ranks that died, in order; also the last, and one whose death has ended the job."""
        failed = [one for one in self.outcomes if one.failed is not None and not one.asked]
        ended = [one for one in failed if (one.killed or one.needed) and one.least != 0]
        died = [one for one in self.outcomes if not one.late and (one.died is not None or one.vanished or one in ended)]
        return sorted(died, key=lambda one: one.lived)  # one may have counted as failed before it was spared

    def first_failure(self) -> Outcome | None:
        """Return the rank that failed first, if any did; where all of this machine died, and others go on, the last."""
        gone = self.elsewhere and all(one.died is not None for one in self.outcomes)
        return first_failure(self.outcomes) or (self.deaths()[-1] if gone else None)

    def ask(self, number: int, group: bool) -> None:
        """Ask the ranks to end, by a signal of the user: once one has, the others get longer to."""
        self.asked = self.asked or time.monotonic()
        self.signal(number, group)
        self.signal(signal.SIGCONT, group)  # a stopped rank gets the other one when it goes on

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to the ranks, and (group) to their children as well."""
        for rank in self.ranks:
            if group or rank.status is None:
                self._signal(rank, number, group)

    def _signal(self, rank: Rank, number: int, group: bool = True) -> None:
        if not rank.lost:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if group else os.kill)(rank.pid, number)

    def stop(self) -> None:
        """Ask all ranks and their children to end, and kill them GRACE seconds later."""
        if self.stopped is not None:
            return
        self._stopping()
        self._kill_at = time.monotonic() + GRACE
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process gets its SIGTERM when it goes on

    def kill(self) -> None:
        """Kill all ranks and their children."""
        if self.stopped is None:
            self._stopping()
        self._kill_at = None
        self._killed = True
        self.signal(signal.SIGKILL)
        if self._running:
            self._drain_at = time.monotonic() + DEAD

    def _stopping(self) -> None:
        self.judge()  # what has failed before that has failed by itself
        self.stopped, self._stop_at = time.monotonic(), None

    def close(self) -> list[int]:
        """End what still runs, and reap the ranks. Once closed, it does nothing.

        Returns
        -------
        list of int
            Ranks whose children had outlived them and have been ended.
        """
        if self._closed:
            return []
        self._closed = True
        if self._running and not self._gave_up:
            self.kill()
            self.wait()
        for pipe in list(self._outputs):
            self._drop(pipe)
        left = self._end_children()
        for rank in self.ranks:
            rank.process.poll()
        for pipe in list(self._reports):
            self._drop(pipe)
        self._tell_guard(b"done\n")
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.kill()  # somebody may have stopped it
        for key in list(self._selector.get_map().values()):
            if key.data[0] == _END:
                ends = select.poll()
                ends.register(key.fd, select.POLLIN)
                ends.poll()  # a thread that tells of an end has then closed its own descriptor
                os.close(key.fd)
        self._selector.close()
        if self._guard is not None:
            self._guard.wait()
        return left

    def _end_children(self) -> list[int]:
        """End what is left of the groups of ranks that have ended."""
        numbers = {rank.pid: rank.number for rank in self.ranks if not rank.lost}
        left = members(numbers)
        waiting: set[int] = set()

        def gone(fd: int) -> None:
            self.forget(fd)
            os.close(fd)
            waiting.discard(fd)

        for pid in left:
            fd = watch(pid)
            waiting.add(fd)
            self._watch(fd, _END, lambda fd=fd: gone(fd))  # type: ignore[misc]
        steps = [(signal.SIGTERM, GRACE), (signal.SIGKILL, DEAD)]
        for number, seconds in steps[1:] if self._killed else steps:
            until = time.monotonic() + seconds
            for group in set(left.values()) if waiting else ():
                for send in (number, signal.SIGCONT):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(group, send)
            while waiting and time.monotonic() < until:
                self._serve(until)
        return [] if self.stopped is not None else sorted({numbers[g] for g in left.values()})


def _channel(fd: int) -> str:
    """Return the name of a pipe that `_report.Reporter` knows."""
    return f"{fd}:{os.fstat(fd).st_ino}"


def _watch_or_kill(process: subprocess.Popen[bytes]) -> int:
    """Return what tells that a process has ended; without that it may not stay."""
    try:
        return watch(process.pid)
    except BaseException:
        process.kill()
        process.wait()
        raise
