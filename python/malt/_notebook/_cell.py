"""One request to all ranks, and the wait until each of them has answered."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from types import TracebackType
from typing import Any

from malt._ranks.story import EVERY

from ._errors import Interrupted
from ._team import Team

GRACE = 0.5
"""Seconds from the first failure of a cell until the ranks that go on are interrupted."""

CHILDREN = 0.4
"""Seconds after which the children of an interrupted rank are interrupted as well.

Not at once, because later cells may use some of them, such as processes that load data.
"""

PATIENCE = 2.0
"""Seconds after which the user is told that an interrupted rank still runs."""


class StopButton:
    """Notes Ctrl-C instead of raising. The stop button of a notebook is Ctrl-C to its kernel.

    As a context manager it raises at its end, unless another exception did. In
    another thread than the main one it does nothing, since Python has no Ctrl-C there.
    """

    def __init__(self) -> None:
        self.pressed = 0
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._before: Any = None

    def __enter__(self) -> StopButton:
        with contextlib.suppress(ValueError):  # another thread
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        os.close(self._reader)
        os.close(self._writer)
        if self.pressed and kind is None:  # too late for the ranks, but the following cells are not to run
            raise Interrupted("the ranks had ended the cell")

    def _press(self, *_: object) -> None:
        self.pressed += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")  # ends the wait for the ranks

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when it is pressed."""
        return self._reader

    def read(self) -> None:
        """Make it unreadable until it is pressed again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 1 << 10)


class Round:
    """A request to all ranks.

    Parameters
    ----------
    team : Team
        The ranks.
    button : StopButton
        What the user interrupts them with.

    Attributes
    ----------
    answers : dict
        The answer of each rank, in the order in which they came.
    stopped : bool
        The user has interrupted the ranks.
    killed : bool
        The user has ended the ranks, since they did not react.
    """

    def __init__(self, team: Team, button: StopButton) -> None:
        self.answers: dict[int, Any] = {}
        self.stopped = self.killed = False
        self._team, self._button = team, button
        self._waiting = set(team.present)
        self._interrupt_at: float | None = None
        self._children_at: float | None = None
        self._tell_at: float | None = None
        self._told = False
        self._look_at: float | None = None

    def run(self, kind: str, content: Any = None) -> None:
        """Send the request and return when all have answered or died, `Team.broken`, or `killed`."""
        team, job = self._team, self._team.job
        team.hear = self._hear
        job.watch(self._button.fileno(), self._stop)
        try:
            team.send(kind, content)
            while not self._over():
                now = time.monotonic()
                if self._interrupt_at is not None and now >= self._interrupt_at:
                    self._interrupt()
                if self._children_at is not None and now >= self._children_at:
                    self._children_at = None
                    team.interrupt_children(self._waiting)
                if self._tell_at is not None and now >= self._tell_at:
                    self._tell()
                if team.story is not None and (self._look_at is None or now >= self._look_at):
                    team.collector.look()
                    self._look_at = now + EVERY
                until = self._deadline()
                job.wait(until, lambda: self._over() or self._deadline() != until)  # noqa: B023 (called at once)
            if not team.broken:
                team.screen.finish()
        finally:
            job.forget(self._button.fileno())

    def _deadline(self) -> float | None:
        times = (self._interrupt_at, self._children_at, self._tell_at, self._look_at, self._team.overdue)
        return min((at for at in times if at is not None), default=None)

    def _over(self) -> bool:
        return not self._waiting or self._team.broken or self.killed

    def _hear(self, number: int, kind: str, content: Any) -> None:
        if kind == "done":
            self._waiting.discard(number)
            self.answers[number] = content
            failed = isinstance(content, dict) and content["error"]
            if failed and not self.stopped and self._interrupt_at is None and self._tell_at is None:
                self._interrupt_at = time.monotonic() + GRACE
            return
        if kind == "died":
            self._waiting.discard(number)
            return
        count, shown = content
        if kind == "display":
            self._team.screen.display(number, shown)
        else:
            self._team.screen.clear(shown)
        if count is not None:
            self._team.answer(number, "shown", count)

    def _stop(self) -> None:
        self._button.read()
        self.stopped = True
        if self._told:
            self.killed = True
        else:
            self._interrupt()

    def _interrupt(self) -> None:
        self._interrupt_at = None
        self._team.interrupt(self._waiting)
        if self._tell_at is None and not self._told:
            self._children_at = time.monotonic() + CHILDREN
            self._tell_at = time.monotonic() + PATIENCE

    def _tell(self) -> None:
        self._tell_at, self._told = None, True
        late = ", ".join(map(str, sorted(self._waiting)))
        print(
            f"malt: interrupted {PATIENCE:.0f} s ago, still running: rank {late}. It is in compiled code, or catches "
            "KeyboardInterrupt. Wait for it, or stop once more to end all ranks with their variables",
            file=sys.stderr,
        )
