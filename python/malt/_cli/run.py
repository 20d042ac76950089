"""``malt run``: starts a program on several ranks."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import BinaryIO

from malt._cli import hosts, nodes, recording, target
from malt._cli.agent import Hosts
from malt._cli.failures import Failures
from malt._cli.options import (
    Parser,
    Refuse,
    UsageError,
    counts,
    events,
    on_death,
    ranks,
    see_on_death,
    see_room,
    settings,
    unfit,
    whole,
)
from malt._cli.recording import Recording
from malt._cli.restarts import RESTARTS, Restarts
from malt._cli.summary import deaths, table
from malt._cli.supervise import Kind, here, keep_standard_descriptors, supervise
from malt._cli.terminal import Terminal
from malt._cli.verdict import spent, verdict
from malt._cli.wrap import columns
from malt._ranks import machine
from malt._ranks.launch import Job, job_environment, meeting
from malt._ranks.output import Display

RANKS = Kind("malt run", "rank")

USAGE = "malt run -n RANKS | -H HOST:RANKS,... [options] [--] SCRIPT.py | -m MODULE | PROGRAM  [arguments]"

DESCRIPTION = """\
Starts a program on several ranks and shows their output, with the rank in front of each
line. If a rank fails, all ranks are stopped within a second; the message at the end names
the first one that failed, and its exit code is returned (128 + n after signal n). The
same failure or warning of several ranks is shown once. Ctrl-C lets the ranks finish;
pressed twice, it kills them."""

EXAMPLES = """\
  malt run -n 4 train.py --epochs 3        a script, with its own arguments
  malt run -n 4 -m package.train           a module
  malt run -n 3 -- ./train                 any program, such as one in C
  malt run -n 4 --log-dir logs train.py    also a file for each rank
  malt run -H node1:4,node2:4 train.py     on two machines, by ssh
  malt run -n 4 --nodes 2 --node-rank 0 --store node0:29500 train.py    without ssh
"""


def parser() -> Parser:
    """Return the parser of the options that come before the program."""
    made = Parser("run", USAGE, DESCRIPTION, EXAMPLES)
    made.add_argument(
        "-n", "--ranks", type=counts, metavar="RANKS", help="number of ranks; with --nodes, on each machine"
    )
    made.add_argument("--log-dir", metavar="DIR", help="also write each rank's output to a file")
    made.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="longest wait of a rank for others (MALT_TIMEOUT); default: 300",
    )
    made.add_argument("--encrypt", action="store_true", help="encrypt all connections between machines (MALT_ENCRYPT)")
    made.add_argument("--summary", action="store_true", help="print at the end where the time went")
    made.add_argument(
        "--on-death",
        type=on_death,
        metavar="WHAT",
        help="effect of a rank's death (MALT_ON_DEATH): stop the job, continue without it, or replace it by a new "
        "process (on one machine); default: stop",
    )
    made.add_argument(
        "--min-ranks",
        type=ranks,
        metavar="RANKS",
        help="with --on-death continue: stop the job when fewer are left (MALT_MIN_RANKS); default: 1",
    )
    made.add_argument(
        "--max-restarts",
        type=partial(whole, least=1, most=100, what="number of starts", example="--max-restarts 3"),
        metavar="NUMBER",
        help="with --on-death replace: how often each rank is started again; default: 3",
    )
    made.add_argument(
        "--events",
        type=events,
        metavar="NUMBER",
        help="keep the last events of each rank for `malt top --events` (MALT_EVENTS); default: 0",
    )
    recording.add_options(made)
    made.add_argument(
        "--bind", action="store_true", help="bind each rank to cores of its own (MALT_BIND), hyper-threads last"
    )
    made.add_argument("-q", "--quiet", action="store_true", help="no notes about threads and cores")
    hosts.add_options(made)
    nodes.add_options(made)
    return made


def _seconds(text: str) -> str:
    try:
        if 0 < float(text) < float("inf"):
            return text
    except ValueError:
        pass
    raise unfit(f"{text!r} is not a time", "expected seconds above 0, such as --timeout 60")


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    own, program = target.split(arguments, parse.options())
    options = parse.parse(own)
    recording.see(options, parse.error)
    if options.hosts is not None or options.hostfile is not None:
        return _run_remote(options, program, parse.error)
    hosts.none_given(options, parse.error)
    argv = target.command(program, parse.error)
    if options.ranks is None:
        parse.error(
            "the number of ranks is missing", do=f"Pass -n {machine.cores()}: one for each core of this machine."
        )
    part = nodes.part(options, parse.error)
    _see_on_death(options, part.size, not part.store, parse.error)
    see_room("malt run", argv, len(part.numbers), more=int(options.log_dir is not None))
    _settle()
    with contextlib.ExitStack() as opened:
        recorded = Recording(options, program, opened)
        return _supervise(options, argv, part, _logs(options, part, opened), recorded)


def _settle() -> None:
    """Make of this process one that can look after others."""
    keep_standard_descriptors()
    # A parent that ignores SIGCHLD would make the kernel throw exit codes away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _logs(options: argparse.Namespace, part: nodes.Part, opened: contextlib.ExitStack) -> dict[int, BinaryIO]:
    if options.log_dir is None:
        return {}
    width = len(str(part.size - 1))
    names = {rank: os.path.join(options.log_dir, f"rank-{rank:0{width}}.log") for rank in part.numbers}
    try:
        os.makedirs(options.log_dir, exist_ok=True)
        # Unbuffered: what a log holds does not depend on how the launcher ends.
        return {rank: opened.enter_context(open(name, "wb", buffering=0)) for rank, name in names.items()}
    except OSError as error:
        raise UsageError("malt run", f"--log-dir {options.log_dir!r} cannot be used", str(error)) from None


def _environment(options: argparse.Namespace, part: nodes.Part) -> dict[str, str]:
    """Return what the environments of the ranks have in common."""
    env = job_environment(len(part.numbers))
    if part.store and part.token:
        together = f"{part.numbers[0]}-{part.numbers[-1]}"
        env.update(meeting(part.size, part.store, part.token, together, part.witnesses))
    return env | settings(options)


def _supervise(
    options: argparse.Namespace,
    argv: Sequence[str],
    part: nodes.Part,
    logs: Mapping[int, BinaryIO],
    recorded: Recording,
) -> int:
    def start(job: Job, terminal: Terminal) -> None:
        env = _environment(options, part)
        for note in () if options.quiet else machine.crowding(len(part.numbers), env):
            terminal.note(note)
        job.elsewhere = sum(rank not in part.numbers for rank in range(part.size))
        bound = dict(zip(part.numbers, machine.bound(len(part.numbers), env), strict=True))

        def begin(number: int, restart: int = 0) -> None:
            told = {**env, "MALT_RANK": str(number)}
            job.start(argv, told, number=number, size=part.size, cores=bound[number], restart=restart)

        for number in part.numbers:
            begin(number)
        if env.get("MALT_ON_DEATH") == "replace":
            Restarts(job, terminal, begin, options.max_restarts or RESTARTS)

    kind = RANKS._replace(size=part.size)
    finish = partial(_finish, options, recorded)
    return supervise(kind, argv[0], part.size + part.witnesses, here, start, finish, logs, recorded.attend)


def _see_on_death(options: argparse.Namespace, size: int, here: bool, refuse: Refuse) -> None:
    """Refuse what so many ranks, which may be on several machines, cannot do when one dies."""
    told = see_on_death({**os.environ, **settings(options)}, refuse)
    if options.min_ranks is not None and told == "stop":
        refuse(
            f"--min-ranks {options.min_ranks} goes with --on-death continue", "otherwise the first death ends the job"
        )
    if options.min_ranks is not None and options.min_ranks > size:
        refuse(f"--min-ranks {options.min_ranks}, and the job has {size} ranks", do=f"Pass a number from 1 to {size}.")
    if options.max_restarts is not None and told != "replace":
        refuse(f"--max-restarts {options.max_restarts} goes with --on-death replace")
    if told == "replace" and not here:
        refuse(
            "--on-death replace is for ranks of one machine, which -n starts",
            do="Pass --on-death continue: the other ranks go on.",
        )


def _run_remote(options: argparse.Namespace, program: Sequence[str], refuse: Refuse) -> int:
    task, places = hosts.task(options, program, refuse), hosts.named(options, refuse)
    size = sum(host.ranks for host in places)
    _see_on_death(options, size, False, refuse)
    _settle()

    def gather(failures: Failures, terminal: Terminal) -> Hosts:
        note = (lambda _: None) if options.quiet else terminal.note
        return Hosts(places, options, task, failures, note, recorded.story)

    def start(there: Hosts, _: Terminal) -> None:
        there.connect()

    with contextlib.ExitStack() as opened:
        recorded = Recording(options, program, opened)
        logs = _logs(options, nodes.Part(size, range(size)), opened)
        kind = RANKS._replace(size=size)
        witnesses = sum(not host.ranks for host in places)
        return supervise(kind, program[0], size + witnesses, gather, start, partial(_finish, options, recorded), logs)


def _finish(options: argparse.Namespace, recorded: Recording, job: Job, terminal: Terminal, display: Display) -> None:
    recorded.finish(job, terminal)
    first = [rank for rank in job.outcomes if rank.number == 0]
    if first and all(rank.died is not None or rank.waits for rank in first) and job.first_failure() is None:
        terminal.note(
            "rank 0 died: after that, all that only rank 0 prints or saves is missing; use malt.first() for it"
        )
    ended = _ended_by_death(job, options)
    if ended:
        terminal.note(ended)
    if display.log_error is not None:
        terminal.note(f"the logs in {options.log_dir!r} are incomplete: {display.log_error}")
    if options.summary:
        terminal.note("where the time of the ranks went, in seconds:")
        ranks = spent(job.outcomes, recorded.story)
        waited = {rank["rank"]: rank["waited"] for rank in ranks}
        dead = job.deaths()
        _show(terminal, table(job.outcomes, columns(2, sys.maxsize) - 2, waited, dead))
        words = verdict(job.outcomes, ranks)
        if words:
            terminal.note("does it pay? " + " ".join(words))
        if dead:
            terminal.note("deaths, and when the other ranks went on, in seconds:")
            _show(terminal, deaths(dead, job.outcomes))


def _show(terminal: Terminal, lines: Sequence[str]) -> None:
    terminal.show(2, "".join(f"  {line}\n" for line in lines).encode())


def _ended_by_death(job: Job, options: argparse.Namespace) -> str:
    """Say why a death has ended a job that goes on after others; empty where that is not so."""
    failed = job.first_failure()
    goes_on = job.least or (options.on_death or os.environ.get("MALT_ON_DEATH") or "stop") != "stop"
    if failed is None or not (failed.killed or failed.needed) or failed.least == 0 or job.asked or not goes_on:
        return ""
    ranks = [rank for rank in job.outcomes if rank.witness is None]
    dead = job.deaths()
    left = sum(rank not in dead and not rank.waits for rank in ranks) + job.elsewhere
    if job.least > left:
        return f"{left or 'no'} rank{'s'[: left > 1]} {'are' if left > 1 else 'is'} left, and the job needs {job.least}"
    if job.least or not failed.killed:
        return ""  # all had joined; the others cannot do without this one, and have said so
    return f"{RANKS.name([failed.number])} was killed before all ranks had joined the job: that ends it"
