"""What ``malt run`` and ``malt sim`` have in common: showing what processes write until all have ended."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple

from malt import _parent
from malt._cli.options import UsageError
from malt._cli.signals import Signals
from malt._cli.terminal import Terminal, colours
from malt._launch import Job
from malt._output import Display
from malt._rank import Rank


class Kind(NamedTuple):
    """What a command starts, for its sentences."""

    command: str
    """The command itself, such as ``malt run``."""
    noun: str
    """One of what it starts: ``rank``."""
    letter: str = ""
    """What stands before the number of one."""

    def name(self, number: int) -> str:
        """Return how one is called, such as ``rank 3``."""
        return f"{self.noun} {self.letter}{number}"


def keep_standard_descriptors() -> None:
    """Open what is closed of descriptors 0 to 2, lest a pipe gets its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(fd)


def supervise(
    kind: Kind,
    program: str,
    size: int,
    start: Callable[[Job, Terminal], None],
    finish: Callable[[Job, Terminal, Display], None] = lambda *_: None,
    logs: Mapping[int, BinaryIO] | None = None,
) -> int:
    """Start processes, show what they write, hand signals on to them, and say how they ended.

    Parameters
    ----------
    kind : Kind
        What they are.
    program : str
        What each of them runs, for errors.
    size : int
        How many there are.
    start : callable
        Starts them all.
    finish : callable, optional
        Called when all have ended.
    logs : mapping of files, optional
        See `Display`.

    Returns
    -------
    int
        The exit code: that of the first failure, 0 if there was none.
    """
    terminal = Terminal(kind.command)
    display = Display(size, terminal.show, (colours(1), colours(2)), logs, kind.letter)
    launcher = os.getpid()
    with Job(display, preexec=lambda: _parent.end_with(launcher)) as job:
        terminal.job = job
        signals = Signals(job, terminal, f"{kind.noun}s")
        try:
            start(job, terminal)
        except OSError as error:
            raise UsageError(kind.command, _not_started(kind, program, len(job.ranks), size, error)) from None
        job.wait()
        terminal.detach()
        left = job.close()
    if left:
        names = f"{kind.noun} {', '.join(f'{kind.letter}{number}' for number in left)}"
        terminal.note(f"ended what {names} had left running (setsid keeps a process)")
    finish(job, terminal, display)
    if terminal.broken:
        return 128 + signal.SIGPIPE
    failed = job.first_failure()
    if failed is None:
        # One that did not end well all the same was killed on demand.
        demanded = signals.first is not None and any(rank.status for rank in job.ranks)
        return 128 + (signals.first or 0) if demanded else 0
    if signals.first is None or failed.status != -signals.first:
        _explain(kind, job, failed, display, terminal)
    return failed.code


def _not_started(kind: Kind, name: str, number: int, size: int, error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
        limit = "ulimit -n" if error.errno in (errno.EMFILE, errno.ENFILE) else "ulimit -u, or the memory"
        return (
            f"only {number} of {size} {kind.noun}s could be started ({error.strerror}): start fewer, or raise {limit}"
        )
    if error.errno == errno.ENOEXEC:
        return f"{name!r} cannot be executed: it is neither a program of this machine nor does it begin with #!"
    return f"{name!r} cannot be executed ({error.strerror}): does the interpreter after its #! exist?"


def _explain(kind: Kind, job: Job, failed: Rank, display: Display, terminal: Terminal) -> None:
    """Say who failed first, and show again what it said, after the noise of the others."""
    others = sum(rank is not failed and rank.failed is None and rank.status != 0 for rank in job.ranks)
    sentence = f"{kind.name(failed.number)} {failed.fate()}"
    if failed.status == -signal.SIGKILL and failed.failure is None:
        sentence += " (by somebody, or by the kernel for lack of memory: see dmesg)"
    if others:
        sentence += f"; the other {others} were stopped" if others > 1 else f"; the other {kind.noun} was stopped"
    # One that was ended from outside had no last words about it.
    outside = failed.failure is None and failed.status in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
    words = b"" if outside else display.last_words(failed.number)
    if not words:
        terminal.note(sentence)
        return
    terminal.note(sentence + "; it ended with:")
    terminal.show(2, words)
