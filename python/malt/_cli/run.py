"""``malt run``: starts a program on several ranks."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
from collections.abc import Sequence
from typing import BinaryIO

from malt import _machine, _parent
from malt._cli import target
from malt._cli.options import Parser, UsageError, nearest, ranks
from malt._cli.signals import Signals
from malt._cli.summary import table
from malt._cli.terminal import Terminal, colours
from malt._launch import Job, job_environment
from malt._output import Display
from malt._rank import Rank

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
    _keep_standard_descriptors()
    # A parent that ignores SIGCHLD would make the kernel throw exit codes away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.ExitStack() as opened:
        return _supervise(options, argv, _logs(options, opened))


def _keep_standard_descriptors() -> None:
    """Open what is closed of descriptors 0 to 2, lest a pipe gets its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(fd)


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
    terminal = Terminal()
    display = Display(size, terminal.show, (colours(1), colours(2)), logs)
    launcher = os.getpid()
    with Job(display, preexec=lambda: _parent.end_with(launcher)) as job:
        terminal.job = job
        signals = Signals(job, terminal)
        env = _environment(options, terminal)
        try:
            for rank in map(str, range(size)):
                job.start(argv, {**env, "MALT_RANK": rank, "MALT_LOCAL_RANK": rank})
        except OSError as error:
            raise UsageError("malt run", _not_started(argv[0], len(job.ranks), size, error)) from None
        job.wait()
        terminal.detach()
        left = job.close()
    if left:
        terminal.note(f"ended what rank {_listed(left)} had left running (setsid keeps a process)")
    if display.log_error is not None:
        terminal.note(f"the logs in {options.log_dir!r} are incomplete: {display.log_error}")
    if options.summary:
        terminal.note("where the time of the ranks went, in seconds:")
        terminal.show(2, "".join(f"  {line}\n" for line in table(job.ranks)).encode())
    if terminal.broken:
        return 128 + signal.SIGPIPE
    failed = job.first_failure()
    if failed is None:
        # A rank that did not end well all the same was killed on demand.
        demanded = signals.first is not None and any(rank.status for rank in job.ranks)
        return 128 + (signals.first or 0) if demanded else 0
    if signals.first is None or failed.status != -signals.first:
        _explain(job, failed, display, terminal)
    return failed.code


def _not_started(name: str, rank: int, size: int, error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
        limit = "ulimit -n" if error.errno in (errno.EMFILE, errno.ENFILE) else "ulimit -u, or the memory"
        return f"only {rank} of {size} ranks could be started ({error.strerror}): start fewer, or raise {limit}"
    if error.errno == errno.ENOEXEC:
        return f"{name!r} cannot be executed: it is neither a program of this machine nor does it begin with #!"
    return f"{name!r} cannot be executed ({error.strerror}): does the interpreter after its #! exist?"


def _explain(job: Job, failed: Rank, display: Display, terminal: Terminal) -> None:
    """Say who failed first, and show again what it said, after the noise of the others."""
    others = sum(rank is not failed and rank.failed is None and rank.status != 0 for rank in job.ranks)
    sentence = f"rank {failed.number} {failed.fate()}"
    if failed.status == -signal.SIGKILL and failed.failure is None:
        sentence += " (by somebody, or by the kernel for lack of memory: see dmesg)"
    if others:
        sentence += f"; the other {others} were stopped" if others > 1 else "; the other rank was stopped"
    # A rank that was ended from outside had no last words about it.
    outside = failed.failure is None and failed.status in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
    words = b"" if outside else display.last_words(failed.number)
    if not words:
        terminal.note(sentence)
        return
    terminal.note(sentence + "; it ended with:")
    terminal.show(2, words)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
