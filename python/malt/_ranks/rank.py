"""One rank as its launcher sees it: what has become of it, and the process, if it is one of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from malt._ranks import machine
from malt._ranks.processes import peek, signal_name
from malt._ranks.report import LONGEST, SPENT

R = TypeVar("R", bound="Outcome")

_PIECE = 1 << 16

MADE = 100


class Outcome:
    """What has become of a rank, wherever it runs."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.host = os.uname().nodename
        """Its machine."""
        self.cores: int | None = None
        """How many the ranks of its machine share; None: not known."""
        self.witness: int | None = None
        """Its number among the witnesses, which vote and are not ranks; None: it is a rank."""
        self.status: int | None = None
        """Exit code, or minus the signal that killed it; None while it runs."""
        self.failed: float | None = None
        """When it failed, in time.monotonic(); None: it did not, or it was stopped."""
        self.asked = False
        """It ended after the user had asked the ranks to."""
        self.lost = False
        """How it ended is not known: something else has reaped it, and its pid is not ours any more, or the connection
        to its host has ended."""
        self.start = 0
        """The number of the start after a death, from 1; 0: it was there from the beginning."""
        self.meets: int | None = None
        """Of how many ranks the job is that it joins at the moment; 0: it has joined; None: it does not."""
        self.least: int | None = None
        """With how many ranks its job goes on after a death, once it has joined (``report``); 0: not after its own."""
        self.records: int | None = None
        """The process that shows its events, once it has joined."""
        self.expelled = False
        """It has said that the others have gone on without it."""
        self.left = False
        """It has said that it has left its job, which goes on after a death: its end is none."""
        self.late = False
        """It has said that the job had ended before it could take the place of a rank that died."""
        self.needed = False
        """It has ended, perhaps with exit code 0, and others could not go on without it."""
        self.died: float | None = None
        """When it ended, in time.monotonic(), if the others go on without it."""
        self.later = 0.0
        """By how much our clock is ahead of that of its machine."""
        self.lived = 0.0
        """How many seconds after the job's start it died or failed; 0: it did not, or it was stopped."""
        self.failure: dict[str, Any] | None = None
        """What it reported about its failure (``_report``): type, peer, which is None or has rank and kind."""
        self.words: dict[str, Any] | None = None
        """Its traceback, if it left it to the launcher to show that (``_report``)."""
        self.warnings: list[tuple[str, str]] = []
        """What it has left to the launcher, to be shown (``_report``): text, same."""
        self.made: dict[str, dict[str, str]] = {}
        """The vectors and segments that it has made, by name (``_report``); the first `MADE` of them."""
        self.summary: dict[str, Any] | None = None
        """What it reported at its end (``_report``), in seconds."""

    @property
    def code(self) -> int:
        """The exit code that a shell would show: 128 + n after signal n."""
        if self.status is None:
            return 128 + signal.SIGKILL
        if self.failure is not None and self.status in (0, -signal.SIGTERM, -signal.SIGKILL):
            return 1  # it was stopped while it was on its way out
        if self.needed and self.status == 0:
            return 1
        return self.status if self.status >= 0 else 128 - self.status

    @property
    def spared(self) -> bool:
        """Whether others may go on without it: it was killed, or they do so already."""
        return self.killed or self.vanished or ((self.expelled or self.waits) and self.status is not None)

    @property
    def waits(self) -> bool:
        """Whether it was started after a death, and the others do not count on it yet."""
        return self.start > 0 and self.least is None

    @property
    def killed(self) -> bool:
        """Whether a signal has ended it, also as a shell says so, and no error of its own."""
        crashes = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV)
        return self.failure is None and self.status is not None and (self.status < 0 or self.status - 128 in crashes)

    @property
    def vanished(self) -> bool:
        """Whether it has ended with exit code 0, but as the others see it has died."""
        return self.status == 0 and not (self.left or self.late) and bool(self.least or self.needed or self.waits)

    def fate(self) -> str:
        """Return how it ended, such as ``ended with exit code 1``."""
        if self.late:
            return "found that the job had ended"
        if self.failure is not None:
            return f"failed with {self.failure['type']}"
        if self.status is None:
            return "does not end: it hangs in the kernel"
        if self.vanished and self.expelled:
            return "ended, after the others had gone on without it (exit code 0)"
        if self.vanished:
            return f"ended without {'leaving' if self.meets == 0 else 'joining'} the job (exit code 0)"
        if self.status >= 0:
            return f"ended with exit code {self.status}"
        return f"was killed by {signal_name(-self.status)}"


def farewell(rank: Outcome, left: Sequence[Outcome], name: Callable[[list[int]], str], elsewhere: int = 0) -> str:
    """Return a sentence about a rank that died, and the ranks that still run, but for those elsewhere; they may fail.

    ``name`` returns how ranks are called.
    """
    left = [other for other in left if other.witness is None]
    if rank.late:
        return f"{name([rank.number])} does not take part again: the job has ended"
    others = name([other.number for other in left]) if left else "no other rank"
    fate = f"{name([rank.number])} {rank.fate()} after {rank.lived:.1f} s"
    return f"{fate}; {others} {'are' if len(left) > 1 else 'is'} left{' on this machine' if elsewhere else ''}"


def successors(rank: Outcome, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the processes that have taken the place of one that died: others were too late, or did not join."""
    after = [other for other in outcomes if other.number == rank.number and other.start > rank.start]
    return [other for other in after if other.least is not None]


def first_failure(ranks: Sequence[R]) -> R | None:
    """Return the rank that failed first, if any did.

    A rank that failed because another was gone comes after all other ranks;
    of two that were noticed together, a killed one comes first.
    """
    failed = [(rank.failed, rank) for rank in ranks if rank.failed is not None]
    if not failed:
        return None

    def order(entry: tuple[float, R]) -> tuple[bool, float, bool, int]:
        at, rank = entry
        by_peer = rank.failure is not None and rank.failure["peer"] is not None
        return by_peer, at, (rank.status or 0) >= 0, rank.number

    return min(failed, key=order)[1]


class Rank(Outcome):
    """One process of this machine, and what has become of it."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        super().__init__(number)
        self.cores = machine.cores()
        self.process = process
        self.pid = process.pid
        self.outputs: list[Pipe] = []
        """Its standard output and standard error."""
        self._begun = b""  # a report of which the end has not come yet

    def look(self) -> None:
        """See whether it has ended."""
        if self.status is None:
            try:
                self.status = peek(self.pid)
            except ChildProcessError:
                self.status, self.lost = 0, True

    def hear(self, piece: bytes, stopped: float | None) -> bool:
        """Take note of what it reports.

        Parameters
        ----------
        piece : bytes
            The next bytes of its report, which may end anywhere.
        stopped : float or None
            When the job was stopped, if it was: a later failure is a consequence.

        Returns
        -------
        bool
            Whether it says that it has failed.
        """
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if len(self._begun) > LONGEST:
            self._begun = b""  # not ours
        failed = [self._note(line, stopped) for line in lines]
        return any(failed)

    def _note(self, line: bytes, stopped: float | None) -> bool:
        try:
            said = json.loads(line)
            if "failed" in said:
                if "words" in said:
                    self.words = _words(**said["words"])
                at, failure = float(said["time"]), {"type": str(said["failed"]), "peer": _peer(said["peer"])}
                if self.expelled or self.waits:
                    self.failure = failure
                elif self.failed is None and (stopped is None or at < stopped):
                    self.failed, self.failure = at, failure
                    return True
            elif "warned" in said:
                self.warnings.append((str(said["warned"]), str(said["same"])))
            elif "meets" in said:
                self.meets = None if said["meets"] is None else int(said["meets"])
            elif "survives" in said:
                self.least, self.left = int(said["survives"]), False
            elif "left" in said:
                self.left = True
            elif "records" in said:
                self.records = int(said["records"])
            elif "expelled" in said:
                self.expelled = True
            elif "late" in said:
                self.late = True
            elif "made" in said:
                if len(self.made) < MADE or said["made"] in self.made:
                    self.made[str(said["made"])] = {str(key): str(value) for key, value in said["is"].items()}
            elif "summary" in said:
                self.summary = _spent(**said["summary"])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
            pass  # not ours: a program may write into any descriptor that it has
        return False


def _peer(said: dict[str, Any] | None) -> dict[str, Any] | None:
    """Check what a rank says of another that is gone: any program may write into the pipe."""
    if said is None:
        return None
    return {"rank": None if said["rank"] is None else int(said["rank"]), "kind": said["kind"]}


def _words(dead: int | None, **texts: str) -> dict[str, Any]:
    """Check in the same way what it says of its traceback."""
    texts = {name: str(texts[name]) for name in ("type", "text", "same", "place")}
    return {**texts, "dead": None if dead is None else int(dead)}


def _spent(
    waited: dict[str, float], deaths: dict[str, float], longest: Sequence[Any], **seconds: float
) -> dict[str, Any]:
    """Check in the same way what it says of its time."""
    by_rank = {"waited": waited, "deaths": deaths}
    return {
        **{kind: float(seconds[kind]) for kind in SPENT},
        **{kind: {str(int(rank)): float(value) for rank, value in of.items()} for kind, of in by_rank.items()},
        "longest": (float(longest[0]), str(longest[1])),
    }


class Pipe:
    """The reading end of a pipe from a rank.

    Parameters
    ----------
    fd : int
        The descriptor; it is closed by `close`.
    take : callable
        Called with what comes.
    ended : callable
        Called with the pipe when nothing more can come.
    """

    def __init__(self, fd: int, take: Callable[[bytes], object], ended: Callable[[Pipe], None]) -> None:
        self.fd = fd
        self.take = take
        self._ended = ended
        os.set_blocking(fd, False)

    def __call__(self) -> None:
        """Take what there is."""
        try:
            piece = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return
        if piece:
            self.take(piece)
        else:
            self._ended(self)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)
