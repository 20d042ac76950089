"""What ``malt run`` writes about a job while it runs and at its end: ``--trace`` and ``--report``."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import io
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO

from malt._cli import report, trace
from malt._cli.facts import Facts, facts
from malt._cli.options import Parser, Refuse, UsageError, settings
from malt._cli.terminal import Terminal
from malt._ranks.launch import Job
from malt._ranks.story import EVERY, ROOM, Collector, Story

Write = Callable[[BinaryIO, Story, Facts, bool], str]

WRITERS: dict[str, Write] = {"trace": trace.write, "report": report.write}
"""By option: what writes the file, and returns what it leaves out."""


def add_options(made: Parser) -> None:
    """Add the options."""
    made.add_argument(
        "--trace",
        metavar="FILE",
        help="write what each rank did when, for https://ui.perfetto.dev and `malt trace`; FILE.gz is compressed",
    )
    made.add_argument(
        "--report", metavar="FILE", help="write a page of HTML: does it pay, times, waits, bytes, ages, loss, deaths"
    )


def _named(options: argparse.Namespace) -> dict[str, str]:
    """Return the files that the options name."""
    return {kind: getattr(options, kind) for kind in WRITERS if getattr(options, kind) is not None}


def see(options: argparse.Namespace, refuse: Refuse) -> None:
    """Have the ranks keep events where a file is to be made of them."""
    names = _named(options)
    if len({os.path.realpath(name) for name in names.values()}) < len(names):
        refuse(f"--trace and --report name the same file, {options.trace!r}", do="Name another one for one of them.")
    for kind, name in names.items():
        if options.events == 0:
            refuse(f"--{kind} is made from events, and --events is 0", do="Leave --events out.")
        if options.nodes is not None:
            refuse(
                f"--{kind} does not go with --nodes",
                "each machine has a launcher of its own, which sees only its own ranks",
                "Start the job with -H, by ssh.",
            )
        if options.events is None:
            options.events = ROOM
        if not _free(name):
            refuse(
                f"--{kind} would overwrite {name!r}, which is not a trace or report",
                do="Name another file, or remove this one.",
            )


def _free(name: str) -> bool:
    """Whether a file has nothing in it but what another run has written; so have devices, and what cannot be read."""
    head = b""
    with contextlib.suppress(OSError, zlib.error):
        if os.path.isfile(name):
            with open(name, "rb") as file:
                head = file.read(1 << 10)
            head = zlib.decompressobj(31).decompress(head) or head  # if it is compressed
    return not head or head.startswith((trace.BEGIN, report.BEGIN.encode()))


class Recording:
    """The files that a user wants of a job; it may be none.

    Parameters
    ----------
    options : argparse.Namespace
        Of ``malt run``.
    program : sequence of str
        The program, as the user has written it.
    opened : contextlib.ExitStack
        Closes the files.
    """

    def __init__(self, options: argparse.Namespace, program: Sequence[str], opened: contextlib.ExitStack) -> None:
        names = _named(options)
        self.story = Story(options.trace is not None) if names else None
        self._program = program
        try:
            self._files = {kind: opened.enter_context(_opened(name)) for kind, name in names.items()}
        except OSError as error:
            raise UsageError("malt run", f"{error.filename!r} cannot be written", error.strerror or "") from None
        self._env: Mapping[str, str] = {**os.environ, **settings(options)}

    def attend(self, job: Job, _: Terminal) -> None:
        """Read what the ranks of this machine do, until they have ended."""
        if self.story is None:
            return
        collector = Collector(job, self.story.take)
        self.story.unseen = collector.unseen
        while not job.wait(time.monotonic() + EVERY):
            collector.look()
        collector.look()
        collector.close()

    def finish(self, job: Job, terminal: Terminal) -> None:
        """Write the files."""
        if self.story is None:
            return
        found = facts(job.outcomes, self.story, self._program, self._env)
        for kind, file in self._files.items():
            with _incomplete(file, terminal):
                left = WRITERS[kind](file, self.story, found, file.name.endswith(".gz"))
                file.flush()
                if left:
                    terminal.note(f"{file.name} leaves out {left}")


def _opened(name: str) -> io.BufferedWriter[io.FileIO]:
    """Open an empty file that no other job is going to write."""
    raw = io.FileIO(name, "a")
    if os.path.isfile(name):
        try:
            fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raw.close()
            raise OSError(error.errno, "another job writes it", name) from None
        except OSError:
            pass  # a file system without locks
        raw.truncate(0)
    return io.BufferedWriter(raw)


@contextlib.contextmanager
def _incomplete(file: io.BufferedWriter[io.FileIO], terminal: Terminal) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        file.raw.close()  # the rest is not written later either
        terminal.lost = "; ".join(filter(None, (terminal.lost, f"{file.name}: {error.strerror}")))
