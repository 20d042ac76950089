"""Waits: cut into slices, interruptible, one at a time on each object.

C gets at most 50 ms at a time. The call keeps its place in the library (see
malt.h, "Timeouts"), Python handles its signals, and the same call is made again.
A wait that ends in any other way than its own return value gives its place up
with malt_cancel.

C tells a call that goes on from a new one by the object alone, so of two threads
that wait on one object the second would take over the place of the first.
`Place` therefore lets one call at a time in.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from malt._errors import StaleError, StateError, TimeoutError
from malt._guide import ELSEWHERE

from . import convert, loading, place
from .loading import lib

__all__ = ["DEFAULT_TIMEOUT", "JOB", "Job", "Place", "seconds", "warn"]

SLICE = 50  # milliseconds that a call may stay in C, at most
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


def slice_of(limit: float) -> int:
    """Return the milliseconds that a call may stay in C which may take so many seconds."""
    return SLICE if limit * 1000 > SLICE else math.ceil(limit * 1000)


class Place:
    """What a call can wait on: the job (handle 0), a vector, or a segment."""

    def __init__(self, handle: int, name: str) -> None:
        self.handle = handle
        self.name = name
        self.closed = False
        self.folding = False  # a fold of the user's is running
        self._lock = threading.Lock()

    def claim(self) -> threading.Lock:
        """Return the lock to be held during a call, for ``with``.

        Other calls are refused, also those of signal handlers and folds in this
        thread. Only ``with`` on the lock itself leaves no moment in which Ctrl-C
        could leave it locked; so a thread that comes between these two lines
        waits instead of being refused.
        """
        place.tell()
        if self.closed or self._lock.locked():
            self.must_be_open()
            raise self._refusal()
        return self._lock

    def must_be_open(self) -> None:
        """Raise if this has been closed."""
        if self.closed:
            raise StaleError(
                f"malt: {self.name} has been closed: its arrays can still be used, but it can no longer be called"
            )

    def _refusal(self) -> Exception:
        loading.alive()  # in a child the lock may be that of a thread which is not there
        if self.folding:
            return StateError(
                f"malt: {self.name} is being folded: a fold cannot call its own vector; return the new value, and "
                "scatter after the gather"
            )
        return StateError(
            f"malt: {self.name} is in a call of another thread, and serves one call at a time: use a lock, or a vector "
            "per thread"
        )

    def call(self, function: Callable[..., int], args: tuple[Any, ...], timeout: float | None, out: Any) -> int:
        """Claim this place, call ``function(*args, milliseconds, out)`` as `wait` does, and return what is in out.

        It is written out for what training loops call most, which seldom has to wait.
        """
        place.tell()
        if self.closed or self._lock.locked():
            self.must_be_open()
            raise self._refusal()
        with self._lock:
            status = None
            try:
                status = function(*args, JOB.slice if timeout is None else slice_of(seconds(timeout)), out)
                if status:
                    self._go_on(status, function, args, (out,), timeout)
            except BaseException:
                self._give_up(status)
                raise
            return out[0]  # type: ignore[no-any-return]

    def wait(self, call: Callable[[int], int], timeout: float | None, hint: str = "") -> None:
        """Make ``call(milliseconds)`` until it has an answer or ``timeout`` seconds are over.

        For the one that has claimed this place. ``hint`` ends what is said of a
        wait that is long.
        """
        status = None
        try:
            status = call(JOB.slice if timeout is None else slice_of(seconds(timeout)))
            if status:
                self._go_on(status, call, (), (), timeout, hint)
        except BaseException:
            self._give_up(status)
            raise

    def _give_up(self, status: int | None) -> None:
        """Give up the place that a call may have kept; None is an answer that Ctrl-C has swallowed."""
        if status is None or status == lib.MALT_ETIMEOUT:
            lib.malt_cancel(self.handle)

    def _go_on(
        self,
        status: int,
        function: Callable[..., int],
        args: tuple[Any, ...],
        out: tuple[Any, ...],
        timeout: float | None,
        hint: str = "",
    ) -> None:
        """Go on with ``function(*args, milliseconds, *out)``, which a first slice has not brought to its end."""
        limit = JOB.timeout if timeout is None else seconds(timeout)
        start = time.monotonic() - slice_of(limit) / 1000
        warned = False
        while status == lib.MALT_ETIMEOUT:
            if loading.ended():
                break
            waited = time.monotonic() - start
            if waited >= limit:
                break
            if waited >= LONG_WAIT and not warned:
                warned = True
                warn(f"{convert.error(status)} (after {waited:.0f} s; goes on for {limit - waited:.0f} s){hint}")
            status = function(*args, slice_of(limit - waited), *out)
        if loading.ended() and threading.current_thread() is not threading.main_thread():
            raise SystemExit  # ends this thread, a daemon, without a word
        if status == lib.MALT_ETIMEOUT:
            raise TimeoutError(
                f"{convert.error(status)} (waited {limit:.3g} s: that is up to MALT_TIMEOUT, or to the timeout= of "
                f"the call){hint}"
            )
        convert.check(status)


class Job(Place):
    """The job: what collective calls wait on, also those of vectors."""

    def __init__(self) -> None:
        super().__init__(0, "the job")
        self.set_timeout(DEFAULT_TIMEOUT)
        self.collective_seconds = 0.0
        """Spent in collective calls."""

    def set_timeout(self, limit: float) -> None:
        """Say how many seconds a timeout of None means."""
        self.timeout = limit
        self.slice = slice_of(limit)

    def together(self, call: Callable[[int], int], timeout: float | None) -> None:
        """`wait`, for a collective call: its time is booked as such."""
        start = time.monotonic()
        try:
            self.wait(call, timeout, f": all ranks must make this call: {ELSEWHERE}")
        finally:
            self.collective_seconds += time.monotonic() - start


JOB = Job()


def warn(message: str) -> None:
    """Warn at the line of the user's that called malt."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "malt":
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, RuntimeWarning, stacklevel=level)
