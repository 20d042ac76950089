"""Where in its program each rank of this machine is: it answers a signal (``malt._lib.stacks``)."""

from __future__ import annotations

import contextlib
import fcntl
import linecache
import os
import re
import signal
import time
from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

from malt._ranks import seen

PATIENCE = 5.0
"""Seconds within which a rank has to answer."""

TOGETHER = 64
"""Ranks that are asked at once: each takes two descriptors meanwhile."""

MEMORY = "/memfd:malt-stack-"
OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}))")
"""A character that is not ASCII, as faulthandler writes it."""


class Frame(NamedTuple):
    """A line of a stack."""

    file: str
    line: int
    function: str
    text: str


class Answer(NamedTuple):
    """What a rank answers: the stack of its main thread, the innermost frame last, or why there is none."""

    stack: tuple[Frame, ...]
    why: str = ""


def ask(ranks: Sequence[seen.Rank]) -> dict[seen.Key, Answer]:
    """Return the answers of ranks: of `TOGETHER` of them those of the same moment, as far as that goes."""
    answers: dict[seen.Key, Answer] = {}
    for first in range(0, len(ranks), TOGETHER):
        with contextlib.ExitStack() as opened:
            asked = [(rank, _send(rank, opened)) for rank in ranks[first : first + TOGETHER]]
            until = time.monotonic() + PATIENCE
            for rank, fd in asked:
                answers[rank.key] = Answer((), fd) if isinstance(fd, str) else _hear(rank, fd, until)
    return answers


def _send(rank: seen.Rank, opened: contextlib.ExitStack) -> int | str:
    """Ask a rank, and return the descriptor from which its answer can be read, or why there will be none."""
    if rank.state == "stopped":
        return "stopped, by SIGSTOP or a debugger"
    try:
        process = os.pidfd_open(rank.pid)  # that process, even if its number is used again
        opened.callback(os.close, process)
        path, name = seen.descriptor(rank.pid, MEMORY)
        if not path:
            return f"{rank.state}; its program is not Python"
        number = int(name.removeprefix(MEMORY))
        if not rank.signals >> (number - 1) & 1:
            return f"{rank.state}; its program uses signal {number} itself, or ends"
        fd = os.open(path, os.O_RDWR)
        opened.callback(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        signal.pidfd_send_signal(process, number)
    except PermissionError:
        return "the system does not let us look into its process"
    except (ProcessLookupError, FileNotFoundError):
        return "it has just ended"
    except BlockingIOError:
        return "another `malt stack` is asking it"
    return fd


def _hear(rank: seen.Rank, fd: int, until: float) -> Answer:
    while not (text := os.pread(fd, os.fstat(fd).st_size, 0)).endswith(b"\nend\n"):
        if time.monotonic() > until:
            why = "it does not answer: it blocks signals, gets no processor time, or has ended"
            return Answer((), f"{rank.state}; {why}")
        time.sleep(0.002)
    os.ftruncate(fd, 0)
    words = ESCAPED.sub(_character, text.decode(errors="replace"))
    frames = [_frame(rank.cwd, *found) for found in FRAME.findall(words)]
    # Without those of MALT, inside the last call.
    of_user = dropwhile(lambda frame: frame.file.startswith(OWN) or "/site-packages/malt/" in frame.file, frames)
    return Answer(tuple(of_user)[::-1])


def _character(escaped: re.Match[str]) -> str:
    """Return the character; what a terminal does not show stays as it is."""
    character = chr(int(escaped[escaped.lastindex or 0], 16))
    return character if character.isprintable() else escaped[0]


def _frame(cwd: str, file: str, line: str, function: str) -> Frame:
    path = os.path.join(cwd, file)
    shown = os.path.relpath(path, cwd) if path.startswith(cwd + os.sep) else file
    return Frame(shown, int(line), function, linecache.getline(path, int(line)).strip())
