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

When the launcher itself is killed, the guard (``_guard``) kills the groups, and
the kernel kills the ranks (``_parent``). When it raises, `Job.close` does.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from malt._machine import threads
from malt._processes import members, peek, signal_name, start_guard, watch

GRACE = 0.4
"""Seconds from SIGTERM to SIGKILL when a job is stopped."""

FINISH = 5.0
"""Seconds that the others get once a rank has ended by a signal that the user sent."""

DRAIN = 0.5
"""Seconds in which children that outlive the ranks may still write."""

DEAD = 5.0
"""Seconds after SIGKILL at which a rank is given up: it hangs in the kernel."""

_PIECE = 1 << 16

# The order in which things that are ready together are looked at: what a rank has
# said comes before its end.
_REPORT, _OUTPUT, _OTHER, _END = range(4)


def job_environment(size: int) -> dict[str, str]:
    """Return the environment of a new job's ranks, less what is each rank's own.

    That is MALT_RANK and MALT_LOCAL_RANK. The name of the job cannot be guessed,
    and the token is what keeps strangers out of it.
    """
    env = dict(os.environ)
    env.update(threads(size, env))
    env.setdefault("PYTHONUNBUFFERED", "1")  # what a rank prints is to be seen while it runs
    env.update(MALT_SIZE=str(size), MALT_STORE=f"local:{os.urandom(16).hex()}", MALT_TOKEN=os.urandom(16).hex())
    return env


class Rank:
    """One process, and what has become of it."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.pid = process.pid
        self.status: int | None = None
        """Exit code, or minus the signal that killed it; None while it runs."""
        self.lost = False
        """Something else in this process has reaped it: pid is not ours any more."""
        self.failed: float | None = None
        """When it failed, in time.monotonic(); None: it did not, or it was stopped."""
        self.failure: dict[str, Any] | None = None
        """What it reported about its failure (``_report``): type, peer."""
        self.summary: dict[str, Any] | None = None
        """What it reported at its end (``_report``)."""

    @property
    def code(self) -> int:
        """The exit code that a shell would show: 128 + n after signal n."""
        if self.status is None:
            return 128 + signal.SIGKILL
        if self.failure is not None and self.status in (0, -signal.SIGTERM, -signal.SIGKILL):
            return 1  # it was stopped while it was on its way out
        return self.status if self.status >= 0 else 128 - self.status

    def fate(self) -> str:
        """How it ended, such as ``ended with exit code 1``."""
        if self.failure is not None:
            return f"failed with {self.failure['type']}"
        if self.status is None:
            return "does not end: it hangs in the kernel"
        if self.status >= 0:
            return f"ended with exit code {self.status}"
        return f"was killed by {signal_name(-self.status)}"


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

    Notes
    -----
    A context manager: leaving it ends and reaps every process, whatever has
    happened. Not for use by several threads at once.
    """

    def __init__(self, output: Callable[[int, int, bytes], None], preexec: Callable[[], None] | None = None) -> None:
        self.ranks: list[Rank] = []
        self.asked = False
        """The user has asked the ranks to end: their ends do not stop the others at once."""
        self.stopped: float | None = None
        """When the job was stopped: what ends after that ends because of it."""
        self._output = output
        self._preexec = preexec
        # poll rather than epoll, since a watched descriptor may be a regular file.
        self._selector = selectors.PollSelector()
        self._readers: list[_Reader] = []
        self._reports: dict[int, _Report] = {}
        self._running = 0
        self._paused = False
        self._killed = False
        self._gave_up = False
        self._closed = False
        self._stop_at: float | None = None
        self._kill_at: float | None = None
        self._drain_at: float | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ starting

    def start(self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Iterable[int] = ()) -> Rank:
        """Start the next rank.

        Raises
        ------
        OSError
            The program could not be started, or there are too many of them.
        """
        if self._guard is None:
            self._guard = start_guard()
        hear, tell = os.pipe()
        try:
            process = subprocess.Popen(
                argv,
                env={**env, "MALT_REPORT": _channel(tell)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(tell, *pass_fds),
                start_new_session=True,
                preexec_fn=self._preexec,
            )
        except BaseException:
            os.close(hear)
            raise
        finally:
            os.close(tell)
        rank = Rank(len(self.ranks), process)
        self.ranks.append(rank)
        self._running += 1
        self._tell_guard(b"%d\n" % rank.pid)
        self._reports[hear] = _Report(self, rank, hear)
        self._watch(hear, _REPORT, self._reports[hear])
        for stream, pipe in ((1, process.stdout), (2, process.stderr)):
            assert pipe is not None
            self._readers.append(_Reader(self, rank.number, stream, pipe))
            self._watch(pipe.fileno(), _OUTPUT, self._readers[-1])
        end = watch(rank.pid)
        self._watch(end, _END, lambda: self._ended(rank, end))
        return rank

    def _tell_guard(self, text: bytes) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):  # somebody has killed the guard
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

    def pause(self, paused: bool) -> None:
        """Leave the output of the ranks in their pipes, so that they wait for us."""
        if paused == self._paused:
            return
        self._paused = paused
        for reader in self._readers:
            if paused:
                self.forget(reader.fd)
            else:
                self._watch(reader.fd, _OUTPUT, reader)
        if self._drain_at is not None:
            self._drain_at = time.monotonic() + DRAIN

    def wait(self, until: float | None = None) -> bool:
        """Serve what happens until all ranks have ended and their output is read.

        Parameters
        ----------
        until : float, optional
            The time.monotonic() at which to come back all the same.

        Returns
        -------
        bool
            False if `until` came first.
        """
        while self._running or self._readers:
            now = time.monotonic()
            if self._stop_at is not None and now >= self._stop_at:
                self.stop()
            if self._kill_at is not None and now >= self._kill_at:
                self.kill()
            drain = None if self._paused else self._drain_at
            if drain is not None and now >= drain:
                self._serve(now)  # what is in the pipes; more than that is not waited for
                self._gave_up = self._running > 0
                return True
            if until is not None and now >= until:
                return False
            self._serve(self._stop_at, self._kill_at, drain, until)
        return True

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
            self._judge()
        elif rank.status is None:
            self._look(rank)
        if self._running == 0:
            self._drain_at = time.monotonic() + DRAIN

    def _look(self, rank: Rank) -> None:
        try:
            rank.status = peek(rank.pid)
        except ChildProcessError:
            rank.status, rank.lost = 0, True

    def _judge(self) -> None:
        """Note who has failed up to now; the first failure stops the job.

        All ranks are looked at, not only the one whose end was noticed: where a
        rank dies, others may fail over it before its own end is seen here.
        """
        for report in list(self._reports.values()):
            report()
        now = time.monotonic()
        for rank in self.ranks:
            if rank.status is None:
                self._look(rank)
            if rank.status and rank.failed is None:
                rank.failed = now
            if rank.status and self.stopped is None:
                self._stop_within(FINISH if self.asked else 0.0)

    def _stop_within(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        self._stop_at = at if self._stop_at is None else min(at, self._stop_at)

    def _reported(self, rank: Rank, line: bytes) -> None:
        """Take note of one line of a rank's report (``_report``)."""
        try:
            said = json.loads(line)
            if "failed" in said:
                at, failure = float(said["time"]), {"type": str(said["failed"]), "peer": bool(said["peer"])}
                if rank.failed is None and (self.stopped is None or at < self.stopped):
                    rank.failed, rank.failure = at, failure
                    # It is about to end. Should it hang on its way, it is stopped.
                    self._stop_within(FINISH if self.asked else GRACE)
            elif "summary" in said:
                rank.summary = dict(said["summary"])
        except (ValueError, TypeError, KeyError):
            pass  # not ours: a program may write into any descriptor that it has

    def first_failure(self) -> Rank | None:
        """Return the rank that failed first, if any did.

        A rank that failed because another was gone comes after those that did
        not; of two that were noticed together, a killed one comes first.
        """
        failed = [(rank.failed, rank) for rank in self.ranks if rank.failed is not None]
        if not failed:
            return None

        def order(entry: tuple[float, Rank]) -> tuple[bool, float, bool, int]:
            at, rank = entry
            by_peer = rank.failure is not None and rank.failure["peer"]
            return by_peer, at, (rank.status or 0) >= 0, rank.number

        return min(failed, key=order)[1]

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to the ranks, and (group) to their children as well."""
        for rank in self.ranks:
            if rank.lost or (not group and rank.status is not None):
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if group else os.kill)(rank.pid, number)

    def stop(self) -> None:
        """Ask all ranks and their children to end, and kill them GRACE seconds later."""
        self._stop_at = None
        if self.stopped is not None:
            return
        self.stopped = time.monotonic()
        self._kill_at = self.stopped + GRACE
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process gets its SIGTERM when it goes on

    def kill(self) -> None:
        """Kill all ranks and their children."""
        self._stop_at = self._kill_at = None
        self._killed = True
        if self.stopped is None:
            self.stopped = time.monotonic()
        self.signal(signal.SIGKILL)
        if self._running:
            self._drain_at = time.monotonic() + DEAD

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
        for reader in list(self._readers):
            reader.end()
        left = self._end_children()
        for rank in self.ranks:
            rank.process.poll()
        for report in list(self._reports.values()):
            report.end()
        for key in list(self._selector.get_map().values()):
            if key.data[0] == _END:
                os.close(key.fd)
        self._selector.close()
        self._tell_guard(b"done\n")
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
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


class _Pipe:
    """The reading end of a pipe from a rank."""

    def __init__(self, job: Job, fd: int) -> None:
        self.job = job
        self.fd = fd

    def read(self) -> bytes | None:
        """Return what there is: nothing at the end, None where there is nothing yet."""
        try:
            return os.read(self.fd, _PIECE)
        except BlockingIOError:
            return None


class _Reader(_Pipe):
    """Output of a rank."""

    def __init__(self, job: Job, rank: int, stream: int, pipe: IO[bytes]) -> None:
        super().__init__(job, pipe.fileno())
        self._rank = rank
        self._stream = stream
        self._pipe = pipe

    def __call__(self) -> None:
        piece = self.read()
        if piece:
            self.job._output(self._rank, self._stream, piece)
        elif piece is not None:
            self.end()

    def end(self) -> None:
        if not self.job._paused:
            self.job.forget(self.fd)
        self.job._readers.remove(self)
        self._pipe.close()
        self.job._output(self._rank, self._stream, b"")


class _Report(_Pipe):
    """What the MALT in a rank tells its launcher, line by line (``_report``)."""

    def __init__(self, job: Job, rank: Rank, fd: int) -> None:
        super().__init__(job, fd)
        os.set_blocking(fd, False)
        self._rank = rank
        self._begun = b""  # a line whose end has not come yet

    def __call__(self) -> None:
        piece = self.read()
        if piece:
            *lines, self._begun = (self._begun + piece).split(b"\n")
            for line in lines:
                self.job._reported(self._rank, line)
            if len(self._begun) > _PIECE:
                self._begun = b""  # not ours
        elif piece is not None:
            self.end()

    def end(self) -> None:
        self.job.forget(self.fd)
        del self.job._reports[self.fd]
        os.close(self.fd)
