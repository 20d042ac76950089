"""The ranks of several hosts, each started by an agent there, to which ssh leads (``malt run -H``)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import malt
from malt._cli.diagnosis import diagnosis
from malt._cli.failures import Failures
from malt._cli.frames import SAID, Frames
from malt._cli.hosts import Host
from malt._cli.options import UsageError
from malt._cli.plan import Plan
from malt._launch import DEAD, FINISH, GRACE, Job
from malt._output import Lines
from malt._rank import Outcome, Rank, first_failure

AT_ONCE = 8
"""Hosts that are being connected to at a time: one sshd refuses many logins at once."""

_KEPT = 100
"""Lines of a host's standard error that are remembered."""

_FAREWELL = 5.0
"""Seconds more than the ranks need to end, that the agents may take to say so."""


class _RemoteRank(Outcome):
    """One rank on another host."""

    def __init__(self, number: int, host: str) -> None:
        super().__init__(number)
        self.host = host
        self.lost = False

    def fate(self) -> str:
        if self.lost:
            return f"is lost: the connection to host {self.host} has ended"
        return f"on host {self.host} {super().fate()}"


class _Connections(Job):
    """The processes that lead to the hosts. That one ends is for `Hosts` to judge."""

    def judge(self) -> None:
        """See who has ended; none of it stops the others here."""
        for rank in self.ranks:
            rank.look()


class _Connection:
    """One host."""

    def __init__(self, host: Host, ranks: Sequence[_RemoteRank]) -> None:
        self.host = host
        self.ranks = ranks
        self.frames = Frames()
        self.errors: list[bytes] = []
        """The last lines that came on its standard error: of ssh, of a shell, of Python."""
        self.lines = Lines()
        self.process: Rank | None = None
        self.stdin = -1
        self.known = False
        """The agent there has begun."""
        self.ready = False
        self.done = False

    def say(self, do: str, **what: Any) -> None:
        """Tell the agent something."""
        if self.stdin >= 0 and self.known:
            with contextlib.suppress(OSError):  # it has ended: that is noticed elsewhere
                os.write(self.stdin, json.dumps({"do": do, **what}).encode() + b"\n")


class Hosts:
    """The ranks of several hosts, as a `Crew`.

    No rank is started before all hosts are ready. What is wrong with one before that
    is a `UsageError`, and nothing has happened; after that, a connection that ends is the
    death of the ranks there.

    Parameters
    ----------
    plan : Plan
        What to run.
    failures : Failures
        Shows what the ranks write, and how they fail.
    note : callable
        Called with what the user may want to know.
    preexec : callable
        As for `Job`.
    """

    def __init__(
        self,
        plan: Plan,
        failures: Failures,
        note: Callable[[str], None],
        preexec: Callable[[], None],
    ) -> None:
        self.ranks: list[_RemoteRank] = []
        self._asked = False
        self._plan = plan
        self._output: Callable[[int, int, bytes], None] = failures.display
        self._told: Callable[[Outcome], None] = failures.heard
        self._note = note
        self._job = _Connections(self._came, preexec)
        self._connections: list[_Connection] = []
        for host in plan.hosts:
            ranks = [_RemoteRank(len(self.ranks) + at, host.name) for at in range(host.ranks)]
            self.ranks += ranks
            self._connections.append(_Connection(host, ranks))
        self._store = ""
        self._public: list[str] = []
        """Hosts with addresses that are not private."""
        self._started = False
        self._stopped = False
        self._stop_at: float | None = None
        self._kill_at: float | None = None
        self._left: list[int] = []

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._output = lambda *_: None
            self._told = lambda _: None
        self.close()

    # ------------------------------------------------------------------ starting

    def start(self) -> None:
        """Begin; `wait` does the rest."""
        self._connect()

    def _connect(self) -> None:
        """Connect to more hosts, if fewer than `AT_ONCE` are still on their way."""
        begun = [c for c in self._connections if c.process is not None]
        under_way = sum(not c.known for c in begun)
        for connection in self._connections[len(begun) : len(begun) + AT_ONCE - under_way]:
            hear, connection.stdin = os.pipe()
            try:
                argv = self._plan.reach(connection.host)
                connection.process = self._job.start(argv, os.environ, stdin=hear)
            except FileNotFoundError:
                raise UsageError(
                    "malt run",
                    f"there is no program {argv[0]!r}: install it (apt install openssh-client), or say --ssh",
                ) from None
            finally:
                os.close(hear)

    def _came(self, number: int, stream: int, data: bytes) -> None:
        connection = self._connections[number]
        if stream == 2:
            self._complained(connection, connection.lines.feed(data) if data else connection.lines.rest())
        elif not data:
            self._ended(connection)
        else:
            for kind, rank, piece in connection.frames.feed(data):
                if kind == SAID:
                    self._heard(connection, json.loads(piece))
                else:
                    self._output(rank, kind, piece)

    def _complained(self, connection: _Connection, lines: Sequence[bytes]) -> None:
        connection.errors = [*connection.errors, *lines][-_KEPT:]
        for line in lines if self._started else ():
            self._note(f"host {connection.host.name}: {line.decode(errors='replace')}")

    def _ended(self, connection: _Connection) -> None:
        if connection.done or connection.process is None:
            return
        if not self._started and not self._stopped:
            self._job.drain(connection.process)
            raise UsageError(
                "malt run",
                diagnosis(
                    connection.host.name,
                    self._plan.reach(connection.host),
                    b"\n".join([*connection.errors, *connection.lines.rest()]).decode(errors="replace"),
                    connection.frames.noise.decode(errors="replace"),
                ),
            )
        for rank in connection.ranks:
            if rank.status is None and self._stopped:
                rank.status = -signal.SIGKILL
            elif rank.status is None:
                rank.status, rank.lost = 255, True
                self._failed(rank)

    def _heard(self, connection: _Connection, message: dict[str, Any]) -> None:
        name, plan = connection.host.name, self._plan
        if "version" in message:
            connection.known = True
            if message["version"] != malt.__version__:
                raise UsageError(
                    "malt run",
                    f"host {name} has MALT {message['version']} and this machine has {malt.__version__}: install the "
                    "same version everywhere, or name another Python there with --python",
                )
            connection.say(
                "prepare",
                program=list(plan.program),
                folder=plan.folder,
                env=dict(plan.env),
                token=plan.token,
                size=plan.size,
                first=connection.ranks[0].number,
                count=len(connection.ranks),
            )
            self._connect()
        elif "refused" in message:
            raise UsageError("malt run", f"host {name}: {message['refused']}")
        elif "ready" in message:
            connection.ready = True
            self._store = message["store"] or self._store
            for note in message["notes"]:
                self._note(f"host {name}: {note}")
            if message["public"]:
                self._public.append(f"{name} ({', '.join(message['public'])})")
            self._begin()
        elif "rank" in message:
            self._news(self.ranks[message["rank"]], message)
        elif "left" in message:
            connection.done = True
            self._left += message["left"]
            os.close(connection.stdin)
            connection.stdin = -1

    def _begin(self) -> None:
        """Start the ranks, once all hosts are ready."""
        if all(connection.ready for connection in self._connections) and not self._stopped:
            self._started = True
            if len(self._connections) > 1:
                self._note(f"what ranks send from host to host {self._encryption()}")
            for connection in self._connections:
                connection.say("start", store=self._store)

    def _encryption(self) -> str:
        said = self._plan.env.get("MALT_ENCRYPT")
        if said:
            return f"is {'not ' if said.lower() in ('0', 'false') else ''}encrypted (MALT_ENCRYPT={said})"
        if self._public:
            return f"is encrypted where an address is not private: {', '.join(self._public)}"
        return "is not encrypted, since all addresses are private (--encrypt changes that)"

    # ------------------------------------------------------------------ how ranks fare

    def _news(self, rank: _RemoteRank, news: Mapping[str, Any]) -> None:
        rank.status, rank.failure, rank.summary = news["status"], news["failure"], news["summary"]
        if rank.words is None and news["words"] is not None:
            rank.words = news["words"]
            self._told(rank)
        if news["failed"]:
            self._failed(rank)

    def _failed(self, rank: _RemoteRank) -> None:
        """Note that a rank has failed; the first failure stops the job."""
        if rank.failed is None:
            rank.failed = time.monotonic()
        if self._stop_at is None and not self._stopped:
            # One that is on its way out has still something to say.
            self._stop_at = rank.failed + (FINISH if self.asked else GRACE if rank.status is None else 0.0)

    def first_failure(self) -> Outcome | None:
        """Return the rank that failed first, if any did."""
        return first_failure(self.ranks)

    def wait(self) -> bool:
        """Serve until all connections have ended."""
        while True:
            now = time.monotonic()
            if self._stop_at is not None and now >= self._stop_at:
                self.stop()
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self._job.kill()
            near = min((at for at in (self._stop_at, self._kill_at) if at is not None), default=None)
            if self._job.wait(near, partial(self._other, (self._stop_at, self._kill_at))):
                return True

    def _other(self, deadlines: tuple[float | None, float | None]) -> bool:
        return deadlines != (self._stop_at, self._kill_at)

    # ------------------------------------------------------------------ what a launcher does

    @property
    def asked(self) -> bool:
        """The user has asked the ranks to end: their ends do not stop the others at once."""
        return self._asked

    @asked.setter
    def asked(self, value: bool) -> None:
        self._asked = value
        self._tell("asked")

    def _tell(self, do: str, **what: Any) -> None:
        for connection in self._connections:
            connection.say(do, **what)

    def watch(self, fd: int, call: Callable[[], None], write: bool = False) -> None:
        """Call whenever fd can be read, or written, until `forget`."""
        self._job.watch(fd, call, write)

    def forget(self, fd: int) -> None:
        """Stop watching fd."""
        self._job.forget(fd)

    def pause(self, paused: bool) -> None:
        """Leave what the ranks write in the connections, so that they wait for us."""
        self._job.pause(paused)

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to the ranks, and (group) to their children as well."""
        if self._started:
            self._tell("signal", number=int(number), group=group)
        else:
            self._abandon(-number)

    def stop(self) -> None:
        """Ask all ranks to end; after a while the agents kill the rest."""
        self._end("stop", GRACE + _FAREWELL)

    def kill(self) -> None:
        """Kill all ranks."""
        self._stopped = False
        self._end("kill", DEAD)

    def _end(self, how: str, seconds: float) -> None:
        self._stop_at = None
        if self._stopped:
            return
        self._stopped = True
        self._kill_at = time.monotonic() + seconds
        if self._started:
            self._tell(how)
        else:
            self._abandon(-signal.SIGKILL)

    def _abandon(self, status: int) -> None:
        """Give up before any rank has been started."""
        if not self._stopped or self._job.stopped is None:
            self._stopped = True
            for rank in self.ranks:
                rank.status = status
            self._job.kill()

    def close(self) -> list[int]:
        """End what still runs; returns the ranks whose children had outlived them."""
        self._stopped = True
        self._job.close()
        for connection in self._connections:
            if connection.stdin >= 0:
                os.close(connection.stdin)
                connection.stdin = -1
        return sorted(self._left)
