"""What a rank tells its launcher: who failed first, and where the time went.

The launcher hands each rank the writing end of a pipe, as ``MALT_REPORT=fd:inode``.
The rank writes lines of JSON to it:

``{"failed": "ValueError", "peer": null, "time": 12.5}``
    An exception was not caught, at this time.monotonic(), which is the same
    clock in all processes of a machine. ``peer`` is ``{"rank": 3, "kind": "ended"}`` where it only says
    that another rank is gone: `PeerError`. The launcher needs this because the rank that
    fails first is often not the first to end.
    ``"words": {"type": …, "text": "Traceback …", "same": "", "dead": null, "place": "train.py:12: v.sync()"}``
    is there as well where the rank leaves it to the launcher to show its traceback. The launcher
    shows the same failure of several ranks once: that is one of the same ``same``, or where that
    is empty, of the same text. ``dead`` is the rank that a `PeerError` is about; ``place`` is the line of
    the user's program.
``{"warned": "train.py:12: UserWarning: …", "same": "…"}``
    The rank leaves it to the launcher to show a warning of Python's. Those of several ranks with the same ``same``
    are shown once.
``{"meets": 4}``
    The rank has begun to join a job of so many ranks, all of which have to; 0: it has joined; null: it has not, and
    has an error. The library says this (capi/report.go), since the launcher needs it of every program.
``{"survives": 1}``
    The rank has joined a job that goes on after a death, as long as so many ranks are
    left; 0: it has called malt_abort, so that its end is that of the job. The library says this, too.
``{"records": 4711}``
    The rank has joined, and this is the process that shows its events (``seen``). So does this.
``{"expelled": true}``
    The others have gone on without this rank, so its end is not that of the job. So does this.
``{"left": true}``
    A rank that ``survives`` has left the job. Without that the others take its end for a death, also with exit code 0.
    So does this.
``{"late": true}``
    The job had ended before this rank, which was to take the place of a dead one, could join. So does this.
``{"made": "model", "is": {"holds": "1000 x float32", "bytes": "4000", "graph": "all", "consistency": "bsp", …}}``
    A vector or segment was made, or is this from now on.
``{"summary": {"wall": 9.1, "setup": 0.4, "busy": 7, "starved": 0, "scatter": 0.3, "wait": 1.2, …}}``
    At the end, in seconds, for ``malt run --summary``. ``setup`` is the time until the rank had joined; ``busy`` that
    of processors since then, in all threads; ``starved`` that in which its main thread could have run and had no
    core. ``wait`` is that for other ranks in any
    call, and is in none of the others; ``meeting`` is the part of it in collective calls; ``waited`` has the part for
    each rank; ``syncs`` how many scatters it made; ``deaths`` when, in time.monotonic(), this rank
    noticed the death of another and repaired its graphs; ``longest`` the seconds of the longest wait
    of which the user was told, and the words. ``age`` is the largest of an update that was folded.

Without a launcher, and in forked children, all of this does nothing. A program
that is not Python need not report: then its end speaks for itself.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import time
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

from malt import _frames
from malt._errors import Error, PeerError, death

VARIABLE = "MALT_REPORT"

SPENT = ("wall", "setup", "busy", "starved", "scatter", "fold", "wait", "meeting", "collective", "syncs", "age")
"""What a rank tells seconds of, a number of syncs, and an age."""

LONGEST = 1 << 18
"""Bytes of a line. A traceback that is longer is printed by the rank."""


class Reporter:
    """One rank's end of the pipe.

    Parameters
    ----------
    where : str, optional
        The descriptor and its inode. The inode is compared, because a process in
        between may have opened something else under that number.
    """

    def __init__(self, where: str | None) -> None:
        self._pid = os.getpid()
        self._start = time.monotonic()
        self._spent = dict.fromkeys(("scatter", "fold", "wait", "meeting", "collective", "syncs"), 0.0)
        self._setup = self._busy = self._starved = 0.0
        self._waited: dict[int, float] = {}
        self.age = 0
        """The largest of an update that was folded."""
        self.deaths: Mapping[int, float] = {}
        """When this rank noticed the death of another, in time.monotonic()."""
        self.longest = (0.0, "")
        """The seconds of the longest wait that the rank has told of, and what was said of it."""
        self._fd: int | None = None
        with contextlib.suppress(OSError, ValueError):
            fd, inode = map(int, (where or "").split(":"))
            found = os.fstat(fd)
            if stat.S_ISFIFO(found.st_mode) and found.st_ino == inode:
                os.set_inheritable(fd, False)  # what the rank starts is not the rank
                self._fd = fd

    def _say(self, message: Mapping[str, Any]) -> bool:
        data = json.dumps(message).encode() + b"\n"
        if self._fd is None or os.getpid() != self._pid or len(data) > LONGEST:
            return False
        try:
            return os.write(self._fd, data) == len(data)
        except OSError:  # the launcher is gone
            return False

    def failed(self, error: BaseException, shown: bool = False) -> bool:
        """Report that the rank ends because of error, before the other ranks hear of it.

        With ``shown``, it is left to the launcher to show the traceback: False if nobody will.
        """
        dead = death(error)
        peer = None if dead is None else {"rank": dead.rank, "kind": dead.kind}
        said = {"failed": type(error).__name__, "peer": peer, "time": time.monotonic()}
        if shown:
            said["words"] = {
                "type": type(error).__name__,
                "text": "".join(format_exception(type(error), error, error.__traceback__)),
                "same": error.same if isinstance(error, Error) else "",
                "dead": error.rank if isinstance(error, PeerError) else None,
                "place": _frames.last(error),
            }
        return self._say(said) and shown

    def warned(self, text: str, same: str) -> bool:
        """Leave a warning to the launcher; False if nobody will show it."""
        return self._say({"warned": text, "same": same})

    def made(self, name: str, facts: Mapping[str, str]) -> None:
        """Report a vector or segment; a description that is long, as of a graph, is cut."""
        self._say({"made": name, "is": {key: f"{value:.100}" for key, value in facts.items()}})

    def joined(self) -> None:
        """Note that the rank has joined its job."""
        self._setup, self._busy, self._starved = time.monotonic() - self._start, time.process_time(), _starved()

    def spent(self, kind: str, seconds: float) -> None:
        """Add to the time spent on ``scatter``, ``fold``, ``wait``, ``meeting`` or ``collective``, or to ``syncs``."""
        self._spent[kind] += seconds

    def waited_for(self, rank: int, seconds: float) -> None:
        """Add to the time for which rank was waited for."""
        self._waited[rank] = self._waited.get(rank, 0.0) + seconds

    def finish(self) -> None:
        """Report where the time went. The last thing that a rank does."""
        summary = {
            "wall": time.monotonic() - self._start,
            "setup": self._setup,
            "busy": time.process_time() - self._busy,
            "starved": _starved() - self._starved,
            **self._spent,
            "age": self.age,
            "waited": self._waited,
            "deaths": self.deaths,
            "longest": self.longest,
        }
        self._say({"summary": summary})
        self._fd = None


def _starved() -> float:
    """Return how many seconds the main thread could have run, and had no core; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


@functools.cache
def reporter() -> Reporter:
    """Return that of this rank, and take it out of the environment: children of this rank find nothing there.

    The library has looked there by then, unless this rank ends before it has joined.
    """
    return Reporter(os.environ.pop(VARIABLE, None))
