"""The ranks of several hosts (``malt run -H``): `Hosts` here, and an `Agent` on each host that does the work there.

An agent starts the ranks of its host, and ends them when the connection ends. That ``malt run``'s machine is gone,
and can no longer end it, the system finds out by what is sent there: so something always is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import struct
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from malt._cli import target
from malt._cli.failures import Failures
from malt._cli.hosts import Host
from malt._cli.remote import RECORDED, Program, Programs, frame, greeting, said
from malt._cli.supervise import not_started
from malt._cli.terminal import Terminal
from malt._guide import below
from malt._ranks import addresses, parent
from malt._ranks.launch import DEAD, GRACE, Job, meeting, numbered, program_environment
from malt._ranks.machine import bound, crowding
from malt._ranks.rank import Outcome
from malt._ranks.room import shortage
from malt._ranks.story import EVERY, Collector, Story

_PIECE = 1 << 16

_SIGN = 5.0
"""Seconds between two signs of life."""

_EVENTS = struct.Struct("<dQ")  # when the rank joined, and how many events are lost; their records follow

_FAREWELL = 5.0
"""Seconds more than the ranks need to end, that the agents may take to say so."""

# ------------------------------------------------------------------ on each host


class RefusedError(Exception):
    """What was asked cannot be done here; the message says why."""


def _refuse(what: str, where: str = "", do: str = "") -> NoReturn:
    raise RefusedError(below(what, where, do))


class Agent(Job):
    """The ranks of this host; standard input and output are the connection."""

    def __init__(self) -> None:
        # Writes without ever waiting for a reader who does not read.
        self._connection = Terminal("malt")
        # malt run shows tracebacks, which travel with the news of a rank, and warnings.
        super().__init__(self._wrote, partial(parent.end_with, os.getpid()), told=lambda _: None)
        self.warned = lambda rank, text, same: self._say(warned=rank.number, text=text, same=same)
        self._heard = b""
        self._listening: list[socket.socket] = []
        self._news: dict[int, dict[str, Any]] = {}
        self._open = True
        self._collector: Collector | None = None
        self._ahead: float | None = None
        """By how much malt run's clock is ahead of ours, at least: as far as the fastest message tells."""

    def serve(self) -> None:
        """Do as told until the ranks have ended, or the connection."""
        self._connection.show(1, greeting())
        while self._open and not self.ranks:
            self._listen()
        if not self._open:
            return
        self._connection.job = self
        self.watch(0, self._listen)
        while not self.wait(time.monotonic() + (EVERY if self._collector else _SIGN), self._tell):
            self._collect()
            if self._open:
                self._say(alive=True)
        self._collect()
        if self._open:
            self._tell()
            self._connection.detach()
            self._say(left=self.close())

    def _collect(self) -> None:
        """Send home what the ranks have recorded."""
        if self._collector is not None and self._open:
            self._collector.look()

    def _recorded(self, number: int, joined: float, records: bytes, lost: int) -> None:
        self._connection.show(1, frame(RECORDED, number, _EVENTS.pack(joined, lost) + zlib.compress(records, 1)))

    def _wrote(self, rank: int, stream: int, data: bytes) -> None:
        self._connection.show(1, frame(stream, rank, data))  # also that there is no more

    def _say(self, **message: Any) -> None:
        self._connection.show(1, said(clock=time.monotonic(), ahead=self._ahead, **message))

    def _tell(self) -> bool:
        """Say what is new about the ranks."""
        for rank in self.ranks:
            fields = "status failure words made summary cores meets least left needed expelled died lived"
            news = {name: getattr(rank, name) for name in fields.split()} | {"failed": rank.failed is not None}
            if news != self._news.get(rank.number):
                self._news[rank.number] = news
                self._say(rank=rank.number, **news)
        return False

    def _listen(self) -> None:
        piece = os.read(0, _PIECE)
        if not piece:
            self._open = False
            if self.ranks:
                self.forget(0)
                self.kill()
            return
        *lines, self._heard = (self._heard + piece).split(b"\n")
        tasks = {
            do.__name__: do for do in (self.prepare, self.begin, self.hear, self.ask, self.signal, self.stop, self.kill)
        }
        try:
            for line in lines:
                what = json.loads(line)
                tasks[what.pop("do")](**what)
        except RefusedError as error:
            self._say(refused=str(error))

    def prepare(
        self,
        program: Sequence[str],
        folder: str,
        env: Mapping[str, str],
        numbers: Sequence[int],
        collect: bool,
        **place: Any,
    ) -> None:
        """See whether the ranks can be started, and be the host where they meet if rank 0 is one of them."""
        try:
            os.chdir(folder)
        except OSError as error:
            do = "Share it, or name another with --chdir."
            _refuse(f"its folder {folder!r} cannot be entered", error.strerror or "", do)
        os.environ.update(env)
        self._argv = target.command(program, _refuse, "malt run")
        self._numbers = range(*numbers)
        count = len(self._numbers)
        found = shortage(count, python=self._argv[0] == sys.executable)
        if found is not None:
            _refuse(*found.lines())
        self._env, self._place = program_environment(count), place
        self._collector = Collector(self, self._recorded) if collect else None
        self.elsewhere = sum(rank not in self._numbers for rank in range(place["size"]))
        store = ""
        try:
            if 0 in self._numbers:
                self._listening, store = addresses.listen()
            all_of_them = addresses.addresses(os.environ.get("MALT_INTERFACE", ""))
        except ValueError as error:
            _refuse(str(error).removeprefix("malt: "))
        public = [address for address in all_of_them if addresses.public(address)]
        self._say(ready=True, store=store, notes=crowding(count, self._env), public=public)

    def hear(self, clock: float) -> None:
        """Take note of what malt run's clock was when it said this."""
        ahead = clock - time.monotonic()
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)

    def begin(self, store: str) -> None:
        """Start the ranks, which meet at store."""
        size = self._place["size"]
        env = self._env | meeting(size, store, self._place["token"], witnesses=self._place["witnesses"])
        fds = [one.fileno() for one in self._listening]
        try:
            for rank, cores in zip(self._numbers, bound(len(self._numbers), env), strict=True):
                own = {"MALT_RANK": str(rank)} | ({} if rank else {"MALT_STORE_FD": ",".join(map(str, fds))})
                self.start(self._argv, env | own, () if rank else fds, number=rank, size=size, cores=cores)
        except OSError as error:
            _refuse(*not_started("rank", self._argv[0], len(self.ranks), len(self._numbers), error))
        for one in self._listening:
            one.close()


# ------------------------------------------------------------------ where malt run runs


class _RemoteRank(Outcome):
    """One rank on another host."""

    def __init__(self, number: int, host: str) -> None:
        super().__init__(number)
        self.host = host

    def fate(self) -> str:
        if self.lost:
            return f"is lost: the connection to host {self.host} has ended"
        return f"on host {self.host} {super().fate()}"

    @property
    def killed(self) -> bool:
        return self.lost or super().killed


class Hosts(Programs):
    """The ranks of several hosts.

    No rank is started before all hosts are ready. A problem with one before that
    is a `UsageError`, and nothing has happened. After that, a connection that ends is the
    death of the ranks there.

    Parameters
    ----------
    hosts : sequence of Host
        Where they are.
    options : argparse.Namespace
        See `Programs`.
    task : mapping
        What the agents prepare: see `hosts.task`.
    failures : Failures
        Shows what the ranks write, and how they fail.
    note : callable
        Called with what the user may want to know.
    story : Story, optional
        Gets the events of the ranks.
    """

    def __init__(
        self,
        hosts: Sequence[Host],
        options: argparse.Namespace,
        task: Mapping[str, Any],
        failures: Failures,
        note: Callable[[str], None],
        story: Story | None = None,
    ) -> None:
        super().__init__("malt run", "malt._cli.agent", [host.name for host in hosts], options)
        self._size = sum(host.ranks for host in hosts)
        numbers = numbered([host.ranks for host in hosts])
        self._there = [
            [_RemoteRank(number, host.name) for number in there] for host, there in zip(hosts, numbers, strict=True)
        ]
        """The ranks of each host, or its witness."""
        self.outcomes: list[_RemoteRank] = sorted(chain(*self._there), key=lambda rank: rank.number)
        for witness, rank in enumerate(self.outcomes[self._size :]):
            rank.witness = witness
        self._task = task
        self._failures = failures
        self._note = note
        self._store = ""
        self._public: list[str] = []
        """Hosts with addresses that are not private."""
        self._ready = 0
        self._started = False
        self._left: dict[int, list[int]] = {}
        """Of each host that is done, the ranks whose children had outlived them."""
        self._later: dict[int, float] = {}
        """By how much this machine's clock is ahead of that of each host: as far as the fastest message tells."""
        self._ahead: dict[int, float] = {}
        """The same, at least."""
        self._story = story
        if story is not None:
            story.clock = self._clock

    # ------------------------------------------------------------------ what the agents say

    def greeted(self, program: Program) -> None:
        """Have the agent prepare."""
        there = self._there[program.number]
        numbers, witnesses = (there[0].number, there[-1].number + 1), len(self.outcomes) - self._size
        collect = self._story is not None
        program.say("prepare", **self._task, size=self._size, witnesses=witnesses, numbers=numbers, collect=collect)

    def heard(self, program: Program, message: dict[str, Any]) -> None:
        """Take what an agent says."""
        later = time.monotonic() - message["clock"]
        self._later[program.number] = min(later, self._later.get(program.number, later))
        if message["ahead"] is not None:
            self._ahead[program.number] = message["ahead"]
        if self._story is not None:
            program.say("hear", clock=time.monotonic())
        if "ready" in message:
            self._ready += 1
            self._store = message["store"] or self._store
            for note in message["notes"]:
                self._note(f"host {program.host}: {note}")
            if message["public"]:
                self._public.append(f"{program.host} ({', '.join(message['public'])})")
            if self._ready == len(self.programs) and self.stopped is None:
                self._started = True
                if self._ready > 1:
                    self._note(f"traffic between hosts {self._encryption()}")
                self._tell("begin", store=self._store)
        elif "rank" in message:
            self._news(self.outcomes[message["rank"]], message, self._later[program.number])
        elif "warned" in message:
            self.warned(self.outcomes[message["warned"]], message["text"], message["same"])
        elif "left" in message:
            self._left[program.number] = message["left"]
            program.hang_up()

    def _encryption(self) -> str:
        told = self._task["env"].get("MALT_ENCRYPT")
        if told:
            return f"is {'not ' if told.lower() in ('0', 'false') else ''}encrypted (MALT_ENCRYPT={told})"
        if self._public:
            return f"is encrypted where an address is not private: {', '.join(self._public)}"
        return "is not encrypted, since all addresses are private (--encrypt changes that)"

    def _news(self, rank: _RemoteRank, news: Mapping[str, Any], later: float) -> None:
        rank.status, rank.failure, rank.summary = news["status"], news["failure"], news["summary"]
        rank.made, rank.cores = news["made"], news["cores"]
        rank.meets, rank.least, rank.left = news["meets"], news["least"], news["left"]
        rank.needed, rank.expelled = news["needed"], news["expelled"]
        rank.lived, rank.later = news["lived"], later
        if rank.died is None and news["died"] is not None:
            self.do_without(rank, news["died"] + later)
        if rank.words is None and news["words"] is not None:
            rank.words = news["words"]
            self._failures.heard(rank)
        if news["failed"]:
            self.failed(rank)
        for lost in self.outcomes:  # with its host, perhaps before this rank could say that the job goes on
            if lost.lost and lost.failed is not None:
                self.do_without(lost, lost.failed)
        self.blame()
        self._dismiss()

    def wrote(self, rank: int, stream: int, data: bytes) -> None:
        """Show what a rank wrote, or take its events."""
        if stream != RECORDED:
            self._failures.display(rank, stream, data)
        elif self._story is not None:
            joined, lost = _EVENTS.unpack_from(data)
            self._story.take(rank, joined, zlib.decompress(data[_EVENTS.size :]), lost)

    def _clock(self, rank: int) -> tuple[float, float]:
        """Return by how much our clock is ahead of that of a rank's host, and by how much this may be wrong."""
        host = next(i for i, there in enumerate(self._there) if any(one.number == rank for one in there))
        most = self._later[host]
        least = self._ahead.get(host, most)
        return (least + most) / 2, (most - least) / 2

    def complained(self, program: Program, lines: Sequence[bytes]) -> None:
        """Show what comes on standard error once the ranks run."""
        for line in lines if self._started else ():
            self._note(f"host {program.host}: {line.decode(errors='replace')}")

    def ended(self, program: Program) -> None:
        """Take the end of a connection for that of its ranks."""
        if not self._started:
            super().ended(program)
        for rank in self._there[program.number] if program.number not in self._left else ():
            if rank.status is None and self.stopped is not None:
                rank.status = -signal.SIGKILL
            elif rank.status is None:
                rank.status, rank.lost = 255, True
                self.do_without(rank, time.monotonic())
        self._dismiss()

    # ------------------------------------------------------------------ what a launcher does

    def _tell(self, do: str, **what: Any) -> None:
        for program in self.programs:
            program.say(do, **what)

    def _pass(self, do: str, number: int, group: bool) -> None:
        if self._started:
            self._tell(do, number=int(number), group=group)
        else:  # nothing has happened, nor will it
            for rank in self.outcomes:
                rank.status = rank.status or -number
            super().kill()

    def ask(self, number: int, group: bool) -> None:
        """Ask the ranks to end."""
        self.asked = self.asked or time.monotonic()
        self._pass("ask", number, group)

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to the ranks, or, as part of `kill`, to the connections."""
        if self._killed:
            super().signal(number, group)
        else:
            self._pass("signal", number, group)

    def stop(self) -> None:
        """Ask all ranks to end; after a while the agents kill the rest."""
        if self.stopped is None:
            self._end("stop", GRACE + _FAREWELL)

    def kill(self) -> None:
        """Kill all ranks."""
        self._end("kill", DEAD)

    def _end(self, how: str, seconds: float) -> None:
        """Have the agents end the ranks; where none runs, or that takes too long, end the connections."""
        now = time.monotonic()
        if self._closed or not self._started or (self._kill_at is not None and now >= self._kill_at):
            super().kill()
            return
        self.stopped, self._stop_at, self._kill_at = now, None, now + seconds
        self._tell(how)

    def close(self) -> list[int]:
        """End what still runs; returns the ranks whose children had outlived them."""
        super().close()
        return sorted(number for left in self._left.values() for number in left)


def main() -> int:
    """Serve one ``malt run``."""
    with Agent() as agent:
        agent.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
