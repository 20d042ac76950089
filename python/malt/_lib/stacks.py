"""The stack of the main thread, for `malt stack`.

That sends a signal, and reads the answer from memory that it finds in ``/proc``.

A tracer would do without the signal, but most systems let no process trace one that it has not
started. The handler is that of faulthandler: it needs neither the interpreter's lock nor memory,
so it also answers from a loop in C. Other threads are left out: faulthandler reads their frames
while they run, and now and then ends the process over that.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import signal

from .loading import lib

_fd: int | None = None


def show() -> None:
    """Answer `malt stack` from now on, where the system lets us."""
    global _fd
    if _fd is not None or not hasattr(os, "memfd_create"):
        return
    with contextlib.suppress(OSError, RuntimeError, StopIteration):
        number = next(n for n in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1) if not _taken() >> (n - 1) & 1)
        _fd = os.memfd_create(f"malt-stack-{number}")
        fcntl.fcntl(_fd, fcntl.F_SETFL, os.O_APPEND)  # a reader empties it
        # faulthandler puts this back at the end of the interpreter: the default would end the process.
        lib.malt_python_stacks(number, -1)
        faulthandler.register(number, file=_fd, all_threads=False, chain=False)
        lib.malt_python_stacks(number, _fd)


def _taken() -> int:
    """Return the signals that this process handles or ignores, a bit for each."""
    with open("/proc/self/status") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigIgn:", "SigCgt:"))]
    return masks[0] | masks[1]


def _after_fork() -> None:
    global _fd
    if _fd is not None:
        os.close(_fd)
        _fd = None


os.register_at_fork(after_in_child=_after_fork)
