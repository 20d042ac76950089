"""Waits: interruptible, and one at a time on each object.

A call stays in C until it has an answer or its time is up. A thread that sleeps there
looks up 20 times a second, in `loading`: Python handles its signals then. What a
handler raises ends the wait, as the end of the process does, and comes out of the
call, also where the library had the answer just then.
A call whose time was up keeps its place in the library (see malt.h, "Timeouts"). A
wait that ends in any other way than its own return value gives its place up with
malt_cancel.

The library lets one call at a time into an object. Where a call of this package makes
several of the library's, it holds the lock of its `Place` meanwhile.
"""

from __future__ import annotations

import math
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from malt._errors import StaleError, StateError, TimeoutError
from malt._frames import ours
from malt._guide import lines

from . import convert, loading, place
from .loading import caught, lib

__all__ = ["DEFAULT_TIMEOUT", "JOB", "Job", "Place", "seconds", "warn"]

DEFAULT_TIMEOUT = 300.0  # seconds, where neither MALT_TIMEOUT nor malt.init says otherwise
LONG_WAIT = 10.0  # seconds after which a wait says whom it is for


def seconds(timeout: float | None) -> float:
    """Return a timeout in seconds; None is the job's."""
    if timeout is None:
        return JOB.timeout
    if isinstance(timeout, bool) or not isinstance(timeout, int | float | np.integer | np.floating):
        raise TypeError(f"malt: timeout={timeout!r}: seconds are expected, or None for the job's timeout")
    if not timeout >= 0:
        raise ValueError(f"malt: timeout={timeout!r}: 0 or more seconds are expected, or None for the job's timeout")
    return float(timeout)


def milliseconds(limit: float) -> int:
    """Return so many seconds as the library takes them."""
    return math.ceil(min(limit, 1e9) * 1000)


def first(limit: float) -> int:
    """Return the milliseconds after which a call that may take ``limit`` seconds comes back for the first time."""
    return milliseconds(min(limit, LONG_WAIT))


def _waited(how: str) -> str:
    """Return what is said of the call of this thread that has come back with MALT_ETIMEOUT."""
    info = convert.failure()
    call, where, advice, topic = map(convert.string, (info.call, info.where, info.advice, info.topic))
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
                lines(f"{self.name} has been closed", "its arrays can still be used, but it can no longer be called")
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
        """Make ``call(milliseconds)`` until it has an answer or ``timeout`` seconds are over; return the answer.

        A negative answer is a status.
        """
        status = None
        try:
            status = call(JOB.first if timeout is None else first(seconds(timeout)))
            if status < 0 or caught:
                status = self.go_on(status, call, timeout)
        except BaseException:
            self.give_up(status)
            raise
        return status

    def give_up(self, status: int | None) -> None:
        """Give up the place that a call may have kept; None is an answer that Ctrl-C has swallowed."""
        if status is None or status == lib.MALT_ETIMEOUT:
            lib.malt_cancel(self.handle)

    def go_on(self, status: int, call: Callable[[int], int], timeout: float | None) -> int:
        """Return the answer of a ``call`` that came back with an error, or with something caught."""
        limit = JOB.timeout if timeout is None else seconds(timeout)
        begun = monotonic() - first(limit) / 1000
        warned = False
        while status == lib.MALT_ETIMEOUT:
            loading.raise_caught()
            waited = monotonic() - begun
            if waited >= limit or loading.ended():
                break
            if waited >= LONG_WAIT and not warned:
                warned = True
                warn(_waited(f"has waited for {waited:.0f} s, and goes on for {limit - waited:.0f} s"))
            status = call(milliseconds(limit - waited))
        if loading.ended() and threading.current_thread() is not threading.main_thread():
            raise SystemExit  # ends this thread, a daemon, without a word
        try:
            return self._answer(status, limit)
        finally:
            loading.raise_caught()  # in place of the answer, or of its error

    def _answer(self, status: int, limit: float) -> int:
        """Return the answer of a call that is over, or raise the error that it is."""
        if status == lib.MALT_ETIMEOUT:
            raise TimeoutError(_waited(f"timed out after {limit:.3g} s (timeout= or MALT_TIMEOUT changes this)"))
        if status == lib.MALT_EBUSY and self.folding:
            raise self._refusal()
        if status < 0:
            self.must_be_open()  # another thread may have closed it
            raise convert.error(status)
        return status


class Job(Place):
    """The job: what collective calls wait on, also those of vectors."""

    def __init__(self) -> None:
        super().__init__(0, "the job")
        self.timeout = DEFAULT_TIMEOUT
        self.first = first(DEFAULT_TIMEOUT)
        self.collective_seconds = 0.0
        """Spent in collective calls."""

    def set_timeout(self, limit: float) -> None:
        """Say how many seconds a timeout of None means, before the first call that may wait."""
        self.timeout = limit
        self.first = first(limit)
        lib.malt_python_patience(self.first)

    def together(self, call: Callable[..., int], timeout: float | None, *args: Any) -> None:
        """Make ``call(*args, milliseconds)`` as `wait` does, for a collective call: its time is booked as such."""
        start = monotonic()
        status = None
        try:
            status = call(*args, self.first if timeout is None else first(seconds(timeout)))
            if status < 0 or caught:
                self.go_on(status, partial(call, *args), timeout)
        except BaseException:
            self.give_up(status)
            raise
        finally:
            self.collective_seconds += monotonic() - start


JOB = Job()


def warn(message: str) -> None:
    """Warn at the line of the user's that called malt."""
    level, frame = 1, sys._getframe()
    while frame is not None and ours(frame):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, RuntimeWarning, stacklevel=level)
