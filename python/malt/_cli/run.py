"""``malt run``: starts a program on several ranks."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import BinaryIO

from malt import _machine
from malt._cli import target
from malt._cli.options import Parser, UsageError, nearest, ranks
from malt._cli.summary import table
from malt._cli.supervise import Kind, keep_standard_descriptors, supervise
from malt._cli.terminal import Terminal
from malt._launch import Job, job_environment
from malt._output import Display

RANKS = Kind("malt run", "rank")

ON_DEATH = ("stop",)

USAGE = "malt run -n RANKS [options] [--] SCRIPT.py | -m MODULE | PROGRAM  [arguments]"

DESCRIPTION = """\
Starts a program on several ranks of this machine and shows what they write, with
the rank in front of each line. Ends all of them within a second when one fails,
shows the traceback of the first failure last, and returns its exit code (128 + n
after signal n). Ctrl-C lets the ranks finish, twice kills them."""

EXAMPLES = """\
  malt run -n 4 train.py --epochs 3        a script, with its own arguments
  malt run -n 4 -m package.train           a module
  malt run -n 3 -- ./train                 any program, such as one in C
  malt run -n 4 --log-dir logs train.py    a file per rank besides
"""


def parser() -> Parser:
    """Return the parser of the options that come before the program."""
    made = Parser("run", USAGE, DESCRIPTION, EXAMPLES)
    made.add_argument("-n", "--ranks", type=ranks, metavar="RANKS", help="how many ranks to start")
    made.add_argument("--log-dir", metavar="DIR", help="also write what each rank writes to a file of its own")
    made.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="longest that a rank may wait for others (MALT_TIMEOUT)"
    )
    made.add_argument("--summary", action="store_true", help="end with where the time went")
    made.add_argument(
        "--on-death", type=_on_death, default="stop", metavar="stop", help="what the death of a rank does"
    )
    made.add_argument("-q", "--quiet", action="store_true", help="no notes about threads and cores")
    return made


def _seconds(text: str) -> str:
    try:
        if 0 < float(text) < float("inf"):
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a time: seconds above 0 are expected, such as --timeout 60")


def _on_death(text: str) -> str:
    if text not in ON_DEATH:
        raise argparse.ArgumentTypeError(f"{text!r}: {nearest(text, ON_DEATH)}; it is the only one so far")
    return text


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    own, program = target.split(arguments, parse.options())
    options = parse.parse(own)
    argv = target.command(program, parse.error)
    if options.ranks is None:
        parse.error(f"say how many ranks to start, such as -n {_machine.cores()} (one for each core of this machine)")
    keep_standard_descriptors()
    # A parent that ignores SIGCHLD would make the kernel throw exit codes away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.ExitStack() as opened:
        return _supervise(options, argv, _logs(options, opened))


def _logs(options: argparse.Namespace, opened: contextlib.ExitStack) -> list[BinaryIO]:
    if options.log_dir is None:
        return []
    width = len(str(options.ranks - 1))
    names = [os.path.join(options.log_dir, f"rank-{rank:0{width}}.log") for rank in range(options.ranks)]
    try:
        os.makedirs(options.log_dir, exist_ok=True)
        # Unbuffered: what a log holds does not depend on how the launcher ends.
        return [opened.enter_context(open(name, "wb", buffering=0)) for name in names]
    except OSError as error:
        raise UsageError("malt run", f"--log-dir {options.log_dir!r} cannot be used: {error}") from None


def _environment(options: argparse.Namespace, terminal: Terminal) -> dict[str, str]:
    """Return what the environments of all ranks have in common."""
    size: int = options.ranks
    env = job_environment(size)
    if options.timeout is not None:
        env["MALT_TIMEOUT"] = options.timeout
    if not options.quiet:
        cores = _machine.cores()
        shared = [name for name in _machine.THREADS if name not in os.environ and name in env]
        if shared:
            share = env[shared[0]]
            names = shared[0] + (" and the like" if len(shared) > 1 else "")
            terminal.note(f"{share} thread{'s'[: share != '1']} for each rank ({names}; {cores} cores, {size} ranks)")
        if size > cores:
            terminal.note(f"{size} ranks share {cores} cores and take turns: expect no more speed than from {cores}")
    return env


def _supervise(options: argparse.Namespace, argv: Sequence[str], logs: Sequence[BinaryIO]) -> int:
    size: int = options.ranks

    def start(job: Job, terminal: Terminal) -> None:
        env = _environment(options, terminal)
        for rank in map(str, range(size)):
            job.start(argv, {**env, "MALT_RANK": rank, "MALT_LOCAL_RANK": rank})

    def finish(job: Job, terminal: Terminal, display: Display) -> None:
        if display.log_error is not None:
            terminal.note(f"the logs in {options.log_dir!r} are incomplete: {display.log_error}")
        if options.summary:
            terminal.note("where the time of the ranks went, in seconds:")
            terminal.show(2, "".join(f"  {line}\n" for line in table(job.ranks)).encode())

    return supervise(RANKS, argv[0], size, start, finish, logs)
