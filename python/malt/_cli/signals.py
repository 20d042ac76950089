"""What ``malt run`` and ``malt sim`` do with signals."""

from __future__ import annotations

import os
import signal
import time

from malt._cli.terminal import Terminal
from malt._ranks.launch import Job

_TWICE = 0.2  # seconds within which the same signal counts once: it came by two ways

# Those that a terminal would send to a whole group go to the children of the ranks
# as well. SIGTERM does not: a rank that saves its state still needs its workers.
_END = {signal.SIGINT: True, signal.SIGHUP: True, signal.SIGTERM: False}
_PASS = (signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Hands the signals of this process on to the ranks.

    SIGINT, SIGTERM and SIGHUP ask the ranks to end; the second of a kind kills
    them. SIGUSR1 and SIGUSR2 are passed on. Ctrl-Z stops the ranks as well, and
    SIGCONT continues them. A signal that is ignored, as under nohup, stays so.

    Parameters
    ----------
    job, terminal
        The job that gets the signals, and the terminal that says so.
    what : str
        What the job consists of, such as ``ranks``.
    """

    def __init__(self, job: Job, terminal: Terminal, what: str) -> None:
        self._job = job
        self._what = what
        self._terminal = terminal
        self._last: dict[int, float] = {}
        self.first: signal.Signals | None = None
        """The first signal that asked for the end."""
        self._hear, self._tell = os.pipe()
        os.set_blocking(self._hear, False)
        os.set_blocking(self._tell, False)
        signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        for number in (*_END, *_PASS, signal.SIGTSTP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        job.watch(self._hear, self._came)

    def _came(self) -> None:
        for number in os.read(self._hear, 512):
            if number in _END:
                self._end(signal.Signals(number))
            elif number in _PASS:
                self._job.signal(number, group=False)
            elif number == signal.SIGTSTP:
                # Not SIGTSTP: the kernel drops it in a group without a terminal.
                self._job.signal(signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                self._job.signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        now = time.monotonic()
        last = self._last.get(number)
        if last is not None:
            if now - last >= _TWICE:
                self._terminal.note(f"{number.name} again: killing the {self._what}")
                self._job.kill()
            return
        self._last[number] = now
        self.first = self.first or number
        how = "press Ctrl-C" if number == signal.SIGINT else "send it"
        self._terminal.note(f"{number.name}: the {self._what} may finish; {how} again to kill them")
        self._job.ask(number, group=_END[number])
