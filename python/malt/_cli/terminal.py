"""Writes what the ranks write, without ever keeping the launcher from watching them."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from collections import deque

from malt._cli.wrap import columns, folded
from malt._ranks.launch import Job

FULL = 1 << 20
"""Bytes that may wait to be written before the ranks have to wait as well."""


class Terminal:
    """Standard output and standard error, written in order as they can take it.

    A reader that does not read (a pager, a terminal held with Ctrl-S) holds the
    ranks up, as it would one program, but not the launcher.

    Parameters
    ----------
    command : str
        The command in whose name the notes speak, such as ``malt run``.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self.job: Job | None = None
        self.broken = False
        """The reader of our output has gone away."""
        self.lost = ""
        """Which output could not be written, and why."""
        self._queue: deque[tuple[int, memoryview]] = deque()
        self._bytes = 0
        self._watched: int | None = None
        self._closed: set[int] = set()

    def show(self, fd: int, text: bytes) -> None:
        """Write text when fd can take it."""
        if fd in self._closed:
            return
        self._queue.append((fd, memoryview(text)))
        self._bytes += len(text)
        if self.job is None:
            self._flush()
        else:
            self._watch()

    def note(self, text: str) -> None:
        """Say something of our own, on standard error; parts of it may be words of another host."""
        text = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
        lines = folded(f"{self._command}: {text}", columns(2, sys.maxsize))
        self.show(2, f"{lines}\n".encode(errors="backslashreplace"))

    def _watch(self) -> None:
        if self.job is None:
            return
        fd = self._queue[0][0] if self._queue else None
        if fd != self._watched:
            if self._watched is not None:
                self.job.forget(self._watched)
            if fd is not None:
                self.job.watch(fd, self._write, write=True)
            self._watched = fd
        self.job.pause(self._bytes > FULL)

    def _write(self) -> None:
        fd, text = self._queue[0]
        try:
            # A pipe that can be written takes PIPE_BUF bytes without blocking.
            done = os.write(fd, text if stat.S_ISREG(os.fstat(fd).st_mode) else text[: select.PIPE_BUF])
        except BlockingIOError:  # somebody has made it non-blocking
            done = 0
        except OSError as error:
            self._lost(fd, error)
            return
        self._bytes -= done
        if done == len(text):
            self._queue.popleft()
        else:
            self._queue[0] = (fd, text[done:])
        self._watch()

    def _lost(self, fd: int, error: OSError) -> None:
        self._closed.add(fd)
        self._queue = deque(entry for entry in self._queue if entry[0] != fd)
        self._bytes = sum(len(text) for _, text in self._queue)
        self._watch()
        if error.errno != errno.EPIPE:
            name = "standard output" if fd == 1 else "standard error"
            self.lost = self.lost or f"{name}: {error.strerror}"
        elif fd == 1 and self.job is not None:
            self.broken = True
            self.job.stop()

    def detach(self) -> None:
        """Write what is left, waiting for it; from then on every `show` waits."""
        if self._watched is not None and self.job is not None:
            self.job.forget(self._watched)
        self.job = self._watched = None
        self._flush()

    def _flush(self) -> None:
        while self._queue:
            ready = select.poll()
            ready.register(self._queue[0][0], select.POLLOUT)
            ready.poll()
            self._write()


def colours(fd: int) -> bool:
    """Return whether to colour what goes to fd (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return os.isatty(fd)
