"""A program of MALT on each of several hosts, to which ssh leads, and what is said with it.

The program begins with `greeting`: what comes before it was written by the login shell. Then it sends frames, and
reads lines of JSON; the end of the connection, by whatever accident, is its end. Nothing here is ever executed or
unpickled.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import malt
from malt._cli.diagnosis import diagnosis
from malt._cli.hosts import HERE
from malt._cli.options import UsageError, see_room
from malt._ranks import parent
from malt._ranks.launch import Job
from malt._ranks.output import Lines
from malt._ranks.rank import Rank

PREAMBLE = b"\0malt agent\n"

OUT, ERR, SAID, RECORDED = 1, 2, 3, 4
"""Kinds of frames: what a rank wrote to its standard output or standard error, what the program itself says, events."""

AT_ONCE = 8
"""Hosts that are being connected to at a time: one sshd refuses many logins at once."""

_HEAD = struct.Struct("<BII")  # kind, rank, bytes that follow

_NOISE = 1 << 14
"""Bytes of a login shell that are kept, to be shown if nothing else comes."""

_KEPT = 100
"""Lines of a host's standard error that are remembered."""

# A question would wait for ever; a host that is gone is to be noticed, within 20 s: when it has left
# three questions, 5 s apart, without an answer for as long.
_SETTINGS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")
_SSH = ("-T", *(word for setting in _SETTINGS for word in ("-o", setting)))


def frame(kind: int, rank: int, data: bytes) -> bytes:
    """Return one frame."""
    return _HEAD.pack(kind, rank, len(data)) + data


def said(**message: Any) -> bytes:
    """Return the frame of what a program says."""
    return frame(SAID, 0, json.dumps(message).encode())


def greeting() -> bytes:
    """Return what a program begins with."""
    return PREAMBLE + said(version=malt.__version__)


class Frames:
    """Cuts what a program sends into frames."""

    def __init__(self) -> None:
        self.noise = b""
        """What came before the program began."""
        self._begun = False
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the frames that data completes, as kind, rank, bytes."""
        self._data += data
        if not self._begun:
            before, found, after = self._data.partition(PREAMBLE)
            if not found:
                self.noise, self._data = before[-_NOISE:], before[-_NOISE:]
                return
            self.noise, self._data, self._begun = before[-_NOISE:], after, True
        at = 0
        while len(self._data) - at >= _HEAD.size:
            kind, rank, size = _HEAD.unpack_from(self._data, at)
            end = at + _HEAD.size + size
            if len(self._data) < end:
                break
            yield kind, rank, self._data[at + _HEAD.size : end]
            at = end
        self._data = self._data[at:]


class Program:
    """The program on one host."""

    def __init__(self, number: int, host: str) -> None:
        self.number = number
        self.host = host
        self.frames = Frames()
        self.errors: list[bytes] = []
        """The last lines that came on its standard error: of ssh, of a shell, of Python."""
        self.lines = Lines()
        self.process: Rank | None = None
        """What leads to it, once that has been started."""
        self.known = False
        """It has begun."""
        self._stdin = -1

    def hear_from(self, fd: int) -> None:
        """Have what is said written there."""
        self._stdin = fd

    def say(self, do: str, **what: Any) -> None:
        """Tell it something."""
        with contextlib.suppress(OSError):  # it has ended: that is noticed elsewhere
            os.write(self._stdin, json.dumps({"do": do, **what}).encode() + b"\n")

    def hang_up(self) -> None:
        """Say nothing more."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1


class Programs(Job):
    """The processes that lead to the programs. A subclass says what the programs do.

    Whatever keeps one from beginning is a `UsageError`, and so is its end, unless `ended` says otherwise.

    Parameters
    ----------
    command : str
        Whose programs they are, such as ``malt run``, for errors.
    module : str
        What Python runs on each host.
    hosts : sequence of str
        What ssh is told. A host may be there several times.
    options : argparse.Namespace
        Those of `hosts.add_ways`.
    """

    def __init__(self, command: str, module: str, hosts: Sequence[str], options: argparse.Namespace) -> None:
        super().__init__(self._came, partial(parent.end_with, os.getpid()))
        self.programs = [Program(number, host) for number, host in enumerate(hosts)]
        self._command = command
        self._ssh = shlex.split(options.ssh or "ssh")
        if os.path.basename(self._ssh[0]) == "ssh":
            self._ssh += _SSH
        self._line = f"exec {options.python or shlex.quote(sys.executable)} -m {module}"
        see_room(command, self._ssh, len(hosts), more=1)

    def _reach(self, host: str) -> list[str]:
        return ["sh", "-c", self._line] if host in HERE else [*self._ssh, host, self._line]

    def connect(self) -> None:
        """Connect to more hosts, if fewer than `AT_ONCE` are still on their way; `wait` does the rest."""
        begun = [program for program in self.programs if program.process is not None]
        under_way = sum(not program.known for program in begun)
        more = self.programs[len(begun) : len(begun) + AT_ONCE - under_way]
        for program in more if self.stopped is None else ():
            hear, tell = os.pipe()
            program.hear_from(tell)
            argv = self._reach(program.host)
            try:
                program.process = self.start(argv, os.environ, stdin=hear)
            except FileNotFoundError:
                what = f"there is no program {argv[0]!r}"
                do = "Install it (apt install openssh-client), or pass --ssh."
                raise UsageError(self._command, what, do=do) from None
            finally:
                os.close(hear)

    def judge(self) -> None:
        """See who has ended; none of it stops the others here."""
        for process in self.ranks:
            process.look()

    def close(self) -> list[int]:
        """End what leads to the programs, and so the programs."""
        left = super().close()
        for program in self.programs:
            program.hang_up()
        return left

    def _came(self, number: int, stream: int, data: bytes) -> None:
        program = self.programs[number]
        if stream == 2:
            lines = program.lines.feed(data) if data else program.lines.rest()
            program.errors = [*program.errors, *lines][-_KEPT:]
            self.complained(program, lines)
        elif not data:
            self.ended(program)
        else:
            for kind, rank, piece in program.frames.feed(data):
                if kind == SAID:
                    self._heard(program, json.loads(piece))
                else:
                    self.wrote(rank, kind, piece)

    def _heard(self, program: Program, message: dict[str, Any]) -> None:
        if "refused" in message:
            raise UsageError(self._command, f"host {program.host}: {message['refused']}")
        if "version" not in message:
            self.heard(program, message)
            return
        program.known = True
        if message["version"] != malt.__version__:
            raise UsageError(
                self._command,
                f"host {program.host} has MALT {message['version']}",
                f"this machine has {malt.__version__}",
                "Install the same version everywhere, or name another Python there with --python.",
            )
        self.greeted(program)
        self.connect()

    # ------------------------------------------------------------------ what a subclass may do

    def greeted(self, program: Program) -> None:
        """Take note that a program has begun."""

    def heard(self, program: Program, message: dict[str, Any]) -> None:
        """Take what a program says."""

    def wrote(self, rank: int, stream: int, data: bytes) -> None:
        """Take what a rank wrote; empty at its end."""

    def complained(self, program: Program, lines: Sequence[bytes]) -> None:
        """Take the lines that came on standard error."""

    def ended(self, program: Program) -> None:
        """Say why a program has ended."""
        if self.stopped is None and program.process is not None:
            self.drain(program.process)
            errors = b"\n".join([*program.errors, *program.lines.rest()]).decode(errors="replace")
            noise = program.frames.noise.decode(errors="replace")
            raise UsageError(self._command, diagnosis(program.host, self._reach(program.host), errors, noise))


# ------------------------------------------------------------------ programs that answer


class Inquiries(Programs):
    """Programs that answer what they are asked; each does one thing at a time."""

    _answers: dict[int, dict[str, Any]]

    def begin(self) -> None:
        """Connect to all hosts."""
        self.connect()
        self.wait(enough=lambda: all(program.known for program in self.programs))

    def heard(self, program: Program, message: dict[str, Any]) -> None:
        """Take an answer."""
        self._answers[program.number] = message

    def inquire(self, programs: Sequence[Program], **what: Any) -> list[dict[str, Any]]:
        """Have some do something, and return what they say."""
        self._answers = {}
        for program in programs:
            program.say(**what)
        self.wait(enough=lambda: len(self._answers) == len(programs))  # the end of one is an error
        return [self._answers[program.number] for program in programs]


def answer(how: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Be such a program, which answers so, until the end of standard input; a `ValueError` refuses."""
    out = sys.stdout.buffer
    out.write(greeting())
    out.flush()
    for line in sys.stdin:
        try:
            out.write(said(**how(json.loads(line))))
        except ValueError as error:
            out.write(said(refused=str(error).removeprefix("malt: ")))
        out.flush()
