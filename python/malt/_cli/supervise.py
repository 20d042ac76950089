"""What ``malt run`` and ``malt sim`` have in common: showing what processes write until all have ended."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import BinaryIO, NamedTuple, TypeVar

from malt._cli.failures import Failures
from malt._cli.options import UsageError
from malt._cli.signals import Signals
from malt._cli.terminal import Terminal, colours
from malt._cli.warned import Warned
from malt._ranks import parent, room
from malt._ranks.launch import Job
from malt._ranks.output import Display
from malt._ranks.rank import Outcome, farewell

C = TypeVar("C", bound=Job)


class Kind(NamedTuple):
    """What a command starts, for its sentences."""

    command: str
    """The command itself, such as ``malt run``."""
    noun: str
    """One of what it starts: ``rank``."""
    letter: str = ""
    """What stands before the number of one."""
    size: int = sys.maxsize
    """From this number on they are witnesses."""

    def name(self, numbers: Iterable[int]) -> str:
        """Return how some are called, such as ``rank 3``, or ``ranks 0-5 and 7``."""
        numbers = sorted(numbers)
        witnesses = [number - self.size for number in numbers if number >= self.size]
        if witnesses:
            ranks = [self.name(numbers[: -len(witnesses)])] if len(numbers) > len(witnesses) else []
            return " and ".join([*ranks, Kind(self.command, "witness").name(witnesses)])
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        words = []
        for run in runs:
            shown = [f"{self.letter}{number}" for number in run]
            words += [f"{shown[0]}-{shown[-1]}"] if len(run) > 2 else shown
        listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        several = "es" if self.noun.endswith("s") else "s"
        return f"{self.noun}{several if len(numbers) > 1 else ''} {listed}"


name = Kind("malt run", "rank").name
"""Returns how some ranks are called."""


def keep_standard_descriptors() -> None:
    """Open what is closed of descriptors 0 to 2, lest a pipe gets its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(fd)


def here(failures: Failures, _: Terminal) -> Job:
    """Return what holds processes of this machine."""
    return Job(failures.display, partial(parent.end_with, os.getpid()), failures.heard)


def supervise(
    kind: Kind,
    program: str,
    size: int,
    gather: Callable[[Failures, Terminal], C],
    start: Callable[[C, Terminal], None],
    finish: Callable[[C, Terminal, Display], None] = lambda *_: None,
    logs: Mapping[int, BinaryIO] | None = None,
    attend: Callable[[C, Terminal], None] = lambda *_: None,
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
    gather : callable
        Returns what will hold them, such as `here`, from what shows their output and their failures, and the
        terminal.
    start : callable
        Starts them all.
    finish : callable, optional
        Called when all have ended.
    logs : mapping of files, optional
        See `Display`.
    attend : callable, optional
        Called when they have started; waits for them as long as it has something to do meanwhile.

    Returns
    -------
    int
        The exit code: that of the first failure, 0 if there was none, or 1 if output is missing.
    """
    terminal = Terminal(kind.command)
    display = Display(size, terminal.show, (colours(1), colours(2)), logs, kind.letter, kind.size)
    failures = Failures(display)
    oom_kills = room.oom_kills()
    with gather(failures, terminal) as job:
        terminal.job = job
        warned = Warned(job, display, terminal.note, kind.name)
        job.mourn = lambda rank, left: terminal.note(farewell(rank, left, kind.name, job.elsewhere))
        signals = Signals(job, terminal, f"{kind.noun}s")
        try:
            start(job, terminal)
        except OSError as error:
            raise UsageError(kind.command, *not_started(kind.noun, program, len(job.ranks), size, error)) from None
        attend(job, terminal)
        job.wait()
        warned.tell()
        terminal.detach()
        left = job.close()
    if left:
        names = f"{kind.noun} {', '.join(f'{kind.letter}{number}' for number in left)}"
        terminal.note(f"ended the processes that {names} had left running (setsid keeps a process)")
    finish(job, terminal, display)
    if terminal.broken:
        return 128 + signal.SIGPIPE
    if terminal.lost:
        terminal.note(f"could not be written to the end: {terminal.lost}")
    failed = job.first_failure()
    if failed is None:
        # One that did not end well all the same was killed on demand.
        demanded = signals.first is not None and any(rank.status and rank.died is None for rank in job.outcomes)
        return 128 + (signals.first or 0) if demanded else int(bool(terminal.lost or display.log_error))
    if signals.first is None or failed.status != -signals.first:
        _explain(kind, job, failed, failures, terminal, room.oom_kills() > oom_kills)
    return failed.code


def not_started(noun: str, name: str, number: int, size: int, error: OSError) -> tuple[str, str, str]:
    """Say why only some of the processes of a program could be started, and what to do."""
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
        limit = "ulimit -n" if error.errno in (errno.EMFILE, errno.ENFILE) else "ulimit -u, or the memory"
        what = f"only {number} of {size} {noun}s could be started"
        return what, error.strerror or "", f"Start fewer, or raise {limit}."
    if error.errno == errno.ENOEXEC:
        why = "it is not a program for this machine, and does not begin with #!"
        return f"{name!r} cannot be executed", why, "End its name in .py if it is Python."
    return f"{name!r} cannot be executed", error.strerror or "", "Does the interpreter after its #! exist?"


def _explain(kind: Kind, job: Job, failed: Outcome, failures: Failures, terminal: Terminal, oom: bool) -> None:
    """Say which rank failed first, and show again what it said, after the noise of the others."""
    stopped = {rank.number for rank in job.outcomes if rank.failed is None and rank.status != 0 and rank.died is None}
    for sentence, words in failures.others(failed, kind.name, stopped):
        terminal.note(sentence)
        terminal.show(2, words)
    alike = failures.alike(failed)
    others = sum(
        rank not in alike and rank.number in stopped and (rank.words is None or rank.words["dead"] in stopped)
        for rank in job.outcomes
        if rank.witness is None
    )
    there = failed.lost or len({rank.host for rank in alike}) == 1
    sentence = f"{kind.name(rank.number for rank in alike)} {failed.fate() if there else Outcome.fate(failed)}"
    if failed.status == -signal.SIGKILL and failed.failure is None:
        somebody = "somebody, or by the kernel for lack of memory: see dmesg"
        sentence += f" (by {'the kernel: the control group is out of memory' if oom else somebody})"
    if others:
        sentence += f"; the other {others} were stopped" if others > 1 else f"; the other {kind.noun} was stopped"
    # One that was ended from outside had no last words about it.
    outside = failed.failure is None and failed.status in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
    words = b"" if outside else failures.words(failed)
    if not words:
        terminal.note(sentence)
        return
    terminal.note(sentence + f"; {'it' if len(alike) == 1 else 'they'} ended with:")
    terminal.show(2, words)
