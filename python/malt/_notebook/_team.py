"""The ranks of a notebook: processes that stay from one cell to the next."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from malt._ranks.launch import Job, job_environment
from malt._ranks.processes import members
from malt._ranks.rank import Outcome, farewell
from malt._ranks.room import see_room
from malt._ranks.run import calling
from malt._ranks.story import ROOM, Collector, Story

from ._channel import Channel, pair, send
from ._outcome import named
from ._show import Screen

CLOSE = 2.0
"""Seconds that ranks have to end by themselves."""

FOLLOW = 1.0
"""Seconds from the end of a rank's connection to the end of the rank."""


class Team:
    """Ranks, and the connections to them.

    They are children of the kernel, bound to the thread that makes the team.
    Nothing is read from them between cells; output in between waits.

    Parameters
    ----------
    size : int
        How many.
    screen : Screen
        Shows their output.
    on_death : {"stop", "continue"}, optional
        What a rank's death does; by default what MALT_ON_DEATH says.
    records : bool, optional
        Whether the ranks record events.

    Attributes
    ----------
    hear : callable
        Called with (rank, kind, content) for the messages of the ranks; the kind is ``died`` where
        a rank has died and the others go on.
    """

    def __init__(self, size: int, screen: Screen, on_death: str | None = None, records: bool = False) -> None:
        see_room(size, more=1)
        self.size = size
        self.screen = screen
        self.on_death = on_death
        self.records = records
        self.story: Story | None = None
        """Gets the events of the cell that runs."""
        self.since = time.time()
        self.cells = 0
        self.hear: Callable[[int, str, Any], None] = lambda *_: None
        self.job = Job(screen)
        self.job.mourn = self._mourn
        self.collector = Collector(self.job, self._take)
        self._channels: dict[int, Channel] = {}
        self._silent: dict[int, float] = {}  # have hung up, and when
        self._pid = os.getpid()
        env = job_environment(size, on_death) | ({"MALT_EVENTS": str(ROOM)} if records else {})
        try:
            for number in range(size):
                self._start(number, {**env, "MALT_RANK": str(number)})
        except BaseException:
            self.close(kill=True)
            raise

    def _start(self, number: int, env: dict[str, str]) -> None:
        ours, theirs = pair()
        self._channels[number] = ours
        try:
            argv = calling("malt._notebook._rank", f"{theirs.fileno()}, {self._pid}")
            self.job.start(argv, env, pass_fds=(theirs.fileno(),))
        finally:
            theirs.close()
        self.job.watch(ours.fileno(), partial(self._receive, number))

    def _take(self, number: int, joined: float, records: bytes, lost: int) -> None:
        if self.story is not None:
            self.story.take(number, joined, records, lost)

    def _receive(self, number: int) -> None:
        message = self._channels[number].receive()
        if message is None:
            self._silent[number] = time.monotonic()
            self.job.forget(self._channels[number].fileno())
            return
        self.job.drain(self.job.ranks[number])  # it was printed before
        self.hear(number, *message)

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message to all ranks."""
        send(self._channels.values(), kind, content)

    def answer(self, number: int, kind: str, content: Any) -> None:
        """Send a message to one rank."""
        self._channels[number].send(kind, content)

    def interrupt(self, numbers: set[int]) -> None:
        """Interrupt some ranks.

        The message comes first: it interrupts a rank that has not begun with its cell
        and ignores the signal.
        """
        for rank in self.job.ranks:
            if rank.number in numbers and rank.status is None and not rank.lost:
                self.answer(rank.number, "interrupt", None)
                os.kill(rank.pid, signal.SIGINT)

    def interrupt_children(self, numbers: set[int]) -> None:
        """Interrupt the processes that some ranks have started and may wait for."""
        groups = {rank.pid for rank in self.job.ranks if rank.number in numbers and not rank.lost}
        for pid in members(groups):
            if pid not in groups:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)

    def _mourn(self, rank: Outcome, left: Sequence[Outcome]) -> None:
        """Say that a rank has died, and that the others go on."""
        print(f"malt: {farewell(rank, left, lambda numbers: named(numbers, self.size))}", file=sys.stderr)
        self.hear(rank.number, "died", None)

    @property
    def present(self) -> list[int]:
        """The ranks that have not died."""
        return [rank.number for rank in self.job.ranks if rank.died is None]

    @property
    def broken(self) -> bool:
        """Whether a rank has ended, and the others do not go on."""
        overdue = self.overdue
        return any(rank.status is not None and rank.died is None for rank in self.job.ranks) or (
            overdue is not None and overdue <= time.monotonic()
        )

    @property
    def overdue(self) -> float | None:
        """When a rank that has hung up must have ended, in time.monotonic(); None where none has."""
        running = {rank.number for rank in self.job.ranks if rank.status is None}
        return min((at + FOLLOW for number, at in self._silent.items() if number in running), default=None)

    def look(self) -> bool:
        """Return `broken`, as it is now."""
        self.job.judge()
        return self.broken

    def bury(self) -> tuple[Outcome, str]:
        """End all ranks because one has ended; return that one, and a sentence about it."""
        ranks = self.job.ranks
        self.job.wait(time.monotonic() + FOLLOW, lambda: self.broken)
        first = self.job.first_failure()
        if first is None:
            ended = [rank for rank in ranks if rank.died is None]
            ended = [rank for rank in ended if rank.status is not None or rank.number in self._silent]
            first = min(ended, key=lambda rank: (not rank.status, rank.number))
        fate = first.fate() if first.status is not None else "has closed its connection to the notebook"
        if first.status == -signal.SIGKILL:
            fate += " (by a user, or by the kernel for lack of memory: see dmesg)"
        self.close(kill=True)
        return first, f"rank {first.number} {fate}"

    def close(self, kill: bool = False) -> None:
        """End the ranks: wait until they end, or kill them. A second call does nothing."""
        if os.getpid() != self._pid:
            return  # a forked child: they are not its own
        channels, self._channels = self._channels, {}
        for number, channel in channels.items():
            if number < len(self.job.ranks) and number not in self._silent:
                self.job.forget(channel.fileno())
            channel.close()
        if channels and not kill:
            self.job.wait(time.monotonic() + CLOSE)
            self.job.stop()
            self.job.wait()
        self.job.close()
        self.collector.close()
