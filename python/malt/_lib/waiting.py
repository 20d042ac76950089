"""Waits: interruptible, and one at a time on each object.

A call stays in C until it has an answer or its time is up. A thread that sleeps there
looks up 20 times a second, in `loading`: Python handles its signals then. An
exception of a handler ends the wait, as the end of the process does, and comes out
of the call, also where the library had the answer just then. A wait that gets long
comes out once, to warn.

The library lets one call at a time into an object. Where a call of this package makes
several of the library's, it holds the lock of its `Place` meanwhile.
"""

from __future__ import annotations

import math
import sys
import threading
import warnings
from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np

from malt._errors import DeathWarning, DriftWarning, NotFiniteWarning, StaleError, StateError, TimeoutError
from malt._frames import in_threads, ours
from malt._guide import lines

from . import convert, loading, place
from .loading import caught, ffi, lib

DEFAULT_TIMEOUT = 300.0  # seconds, where neither MALT_TIMEOUT nor malt.init says otherwise


REAL = int | float | np.integer | np.floating
"""Types of a number of seconds."""


def seconds(limit: float | None, name: str = "timeout", without: str = "for the job's timeout") -> float:
    """Return the seconds of that argument; of a timeout None is the job's."""
    if limit is None:
        return JOB.timeout
    if isinstance(limit, bool) or not isinstance(limit, REAL):
        raise TypeError(lines(f"{name}={limit!r}", f"expected seconds, or None {without}"))
    if not limit >= 0:
        raise ValueError(lines(f"{name}={limit!r}", f"expected 0 or more seconds, or None {without}"))
    return float(limit)


def milliseconds(limit: float) -> int:
    """Return so many seconds as the library takes them."""
    return math.ceil(min(limit, 1e9) * 1000)


def _waited(how: str, took: float) -> str:
    """Return what is said of the call of this thread whose time is up, or that waits for long."""
    info = convert.failure()
    call, where, advice, topic = map(convert.string, (info.call, info.where, info.advice, info.topic))
    # Ctrl-C ends a wait before its time. Of ranks that have not joined no time is told.
    if took >= max(loading.LONG_WAIT, JOB.longest[0]) and not caught and call != "malt.init":
        JOB.longest = took, " ".join(f"{where} in {call}. {advice}".split())
    return lines(f"{call} {how}", where, advice, topic=topic)


class Place:
    """What a call can wait on: the job (handle 0), a vector, or a segment."""

    def __init__(self, handle: int, name: str) -> None:
        self.handle = handle
        self.name = name
        self.closed = False
        self.folding = False  # a fold of the user's is running
        self._lock = threading.Lock()

    def claim(self, depth: int = 4) -> threading.Lock:
        """Return the lock to be held during several calls of the library's, for ``with``.

        ``depth`` is that of `place.tell`.

        Others of the kind are refused, also those of signal handlers and folds in this
        thread. Only ``with`` on the lock itself leaves no moment in which Ctrl-C
        could leave it locked; so a thread that comes between these two lines
        waits instead of being refused.
        """
        place.tell(depth)
        self.must_be_free()
        return self._lock

    def must_be_free(self) -> None:
        """Raise if this has been closed, or is claimed."""
        if self.closed or self._lock.locked():
            self.must_be_open()
            raise self._refusal()

    def must_be_open(self) -> None:
        """Raise if this has been closed."""
        if self.closed:
            raise StaleError(
                lines(f"{self.name} has been closed", "its arrays can still be used, but calls on it fail")
            )

    def _refusal(self) -> Exception:
        loading.alive()  # in a child the lock may be that of a thread which is not there
        if self.folding:
            return StateError(
                lines(
                    f"{self.name} is being folded, and a fold cannot call its own vector",
                    do="Return the new value, and scatter after the gather.",
                    topic="fold",
                )
            )
        return StateError(
            lines(
                f"{self.name} is in a call of another thread, and serves one at a time",
                do="Use a lock, or a vector for each thread.",
            )
        )

    def wait(self, call: Callable[[int], int], timeout: float | None) -> int:
        """Return the answer of ``call(milliseconds)``, which waits for ``timeout`` seconds at most.

        A negative answer is a status.
        """
        status = call(JOB.milliseconds if timeout is None else milliseconds(seconds(timeout)))
        if status < 0 or caught:
            self.answer(status, timeout)
        return status

    def answer(self, status: int, timeout: float | None) -> int:
        """Return the answer of a call, or raise what it means, or what was caught meanwhile."""
        if loading.ended() and threading.current_thread() is not threading.main_thread():
            raise SystemExit  # ends this thread, a daemon, without a word
        try:
            if status == lib.MALT_ETIMEOUT:
                limit = seconds(timeout)
                how = f"timed out after {limit:.3g} s (timeout= or MALT_TIMEOUT changes this)"
                raise TimeoutError(_waited(how, limit))
            if status == lib.MALT_EBUSY and self.folding:
                raise self._refusal()
            if status < 0:
                self.must_be_open()  # another thread may have closed it
                raise convert.error(status)
            return status
        finally:
            loading.raise_caught()  # in place of the answer, or of its error


class Job(Place):
    """The job: what collective calls wait on, also those of vectors."""

    def __init__(self) -> None:
        super().__init__(0, "the job")
        self.timeout = DEFAULT_TIMEOUT
        self.milliseconds = milliseconds(DEFAULT_TIMEOUT)
        self.collective_seconds = 0.0
        """Spent in collective calls."""
        self.deaths: dict[int, float] = {}
        """When this rank noticed that another had died, and went on, in time.monotonic()."""
        self.longest = (0.0, "")
        """The seconds of the longest wait that it has told of, and what was said of that."""
        self.begun: list[threading.Event] = []
        """The ends of syncs that go on beside the program."""

    def must_be_free(self) -> None:
        """Wait for the syncs that go on beside the program: ranks in a collective call are not waited for in a sync."""
        for end in self.begun[:]:
            loading.alive()  # in a child no end would come
            end.wait()
        super().must_be_free()

    def set_timeout(self, limit: float) -> None:
        """Say how many seconds a timeout of None means, before the first call that may wait."""
        self.timeout = limit
        self.milliseconds = milliseconds(limit)
        lib.malt_python_patience(self.milliseconds)

    def together(self, call: Callable[..., int], timeout: float | None, *args: Any) -> None:
        """Make ``call(*args, milliseconds)`` as `wait` does, for a collective call: its time is booked as such."""
        start = monotonic()
        try:
            status = call(*args, self.milliseconds if timeout is None else milliseconds(seconds(timeout)))
            if status < 0 or caught:
                self.answer(status, timeout)
        finally:
            self.collective_seconds += monotonic() - start


JOB = Job()
in_threads()


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn at the line of the user's that called malt."""
    level, frame = 1, sys._getframe()
    others = ("torch.", "threading")
    while frame is not None and (ours(frame) or frame.f_globals.get("__name__", "").startswith(others)):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def warn_of_death(rank: int, why: str) -> None:
    """Note a death after which this rank goes on, and warn of it."""
    JOB.deaths[rank] = monotonic()
    warn(f"rank {rank} has died: {why}; the others continue without it", DeathWarning)


MAY_OVERFLOW: set[str] = set()
"""Names of vectors in which infinities mean nothing: a gradient scaler makes some, and all ranks skip that step."""


def warn_of_trouble(trouble: Any, vector: str) -> None:
    """Warn of what is the matter with a vector: a malt_trouble."""
    rank = trouble.rank
    if trouble.kind == lib.MALT_TAPE_FULL:
        warn(lines(f"{vector}: rank {rank} records no more", ffi.string(trouble.why).decode(), topic="replay"))
    elif trouble.kind == lib.MALT_TAPE_ENDS:
        warn(lines(f"{vector}: the recorded run ends here, and gathers fold what has come", topic="replay"))
    elif trouble.kind == lib.MALT_MEMLOCK:
        what = f"RDMA is off: rank {rank} may lock too little memory, and updates go by TCP"
        where = f"RLIMIT_MEMLOCK is {trouble.limit >> 10} KiB, and RDMA needs {trouble.need >> 10} KiB"
        warn(lines(what, where, "ulimit -l unlimited; in a container, --ulimit memlock=-1"))
    elif trouble.kind == lib.MALT_NO_RDMA:
        what = f"RDMA with rank {rank} has failed, and updates go by TCP from now on"
        warn(lines(what, ffi.string(trouble.why).decode(), "`malt doctor` has the card write to itself"))
    elif trouble.kind == lib.MALT_NOT_FINITE:
        if vector in MAY_OVERFLOW:
            return
        what = f"{vector}: NaN or infinity has come from rank {rank}"
        where = "the last fold has put it into the values of this rank"
        do = f"Look at the loop of rank {rank}, and at the learning rate."
        warn(lines(what, where, do, topic="nan"), NotFiniteWarning)
    else:
        what = f"{vector}: rank {rank} falls behind, and async waits for no rank"
        where = f"it made {trouble.theirs} syncs in {trouble.seconds:.0f} s, and this rank {trouble.own}"
        warn(lines(what, where, 'Use consistency="ssp:8", or give that rank less work.', topic="slow"), DriftWarning)


def warn_of_wait(waited: float, left: float) -> None:
    """Warn whom a wait of this thread is for that has lasted so many seconds, and may last ``left`` more."""
    warn(_waited(f"has waited for {waited:.0f} s, and continues for {left:.0f} s", waited))
