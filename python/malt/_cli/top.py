"""``malt top``: what the ranks of this machine are doing."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from malt._cli import looks
from malt._cli.options import Parser, number
from malt._cli.supervise import name
from malt._cli.wrap import aligned, columns, counted, folded, span
from malt._ranks import seen

DESCRIPTION = """\
Shows what the ranks of your jobs are doing, on this machine or on others (-H): which of them wait,
for which ranks and for how long, how often they sync, the bytes that they send, their clock, the age of the
updates that they fold, the loss that they log (malt.log), and their memory. It reads memory that
the ranks share: they do not notice, and need no option. Ctrl-C ends it, and not the job."""

EXAMPLES = """\
  malt top                         a table that is renewed every second
  malt top --once --json           all numbers once, for a script
  malt top --events                what happens, line by line; for malt run --events 10000
  malt top -H node1,node2          the ranks on other machines, by ssh
"""

COLUMNS = ("rank", "pid", "state", "syncs/s", "bytes/s", "clock", "age", "loss", "memory")
NARROW = 80
FIELDS = (
    *("rank", "host", "pid", "state", "waits_for", "waited", "syncs", "bytes", "clock", "age", "loss", "memory"),
    *("mark", "place", "advice", "dead"),
)
"""What ``--json`` says of each rank, besides rates."""

STYLES = {
    r"(?m)^job .*": "bold",
    r"waits (\S+ \w+ )?for \S+( and \d+)?|.* has waited .*|.* have waited .*|.* wait .*": "yellow",
    r"computing|in a \w+": "green",
    r".* died; .*|.*\bstopped\b.*": "red",
}
"""How rich shows what fits a pattern."""

LONG = 1.0
"""Seconds from which a wait has a line of its own."""

OFTEN = 0.2
"""The part of its time from which a rank's shorter waits have one."""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("top", "malt top [options] [JOB]", DESCRIPTION, EXAMPLES)
    looks.add_options(made)
    made.add_argument("--once", action="store_true", help="print the table once, and end")
    made.add_argument("--json", action="store_const", const=True, help="a line of JSON instead of each table")
    made.add_argument("--events", action="store_true", help="print the events of the ranks as they come")
    made.add_argument(
        "--every", type=_seconds, default=1.0, metavar="SECONDS", help="time between two tables; default: 1"
    )
    return made


def _seconds(text: str) -> float:
    return number(float, text, 0.05, 3600, "number of seconds", "--every 2")


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    if options.events and options.hosts is not None:
        parse.error(
            "--events is for this machine", do=f"Log in there: ssh {options.hosts.split(',')[0]} malt top --events"
        )
    with looks.at("malt top", options, parse.error) as look:
        return (_follow if options.events else _watch)(look, options)


def _watch(look: looks.Look, options: argparse.Namespace) -> int:
    """Print tables until the ranks have ended."""
    before = look.chosen()
    screen = not options.once and not options.json and sys.stdout.isatty()
    with _screen() if screen else contextlib.nullcontext(lambda lines: print(*lines, sep="\n", flush=True)) as show:
        while True:
            time.sleep(options.every)
            now = look.jobs()
            if options.json:
                print(json.dumps([_facts(job, ranks, before) for job, ranks in now.items()]), flush=True)
            else:
                show([*_table(now, before, columns(1, NARROW))] or ["The job has ended."])
            if options.once or not now:
                return 0
            before = now


@contextlib.contextmanager
def _screen() -> Iterator[Callable[[list[str]], None]]:
    """Give what shows lines in the place of those before, on the other screen."""

    def show(lines: list[str]) -> None:
        height = os.get_terminal_size(1).lines
        if len(lines) >= height:
            lines = [*lines[: height - 2], f"{len(lines) - height + 2} more lines: malt top --once prints all"]
        text = "".join(f"{line}\033[K\n" for line in _coloured("\n".join(lines)).split("\n"))
        print(f"\033[H{text}\033[J", end="", flush=True)

    print("\033[?1049h\033[?25l", end="")  # without a cursor
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield show
    finally:
        signal.signal(signal.SIGTERM, before)
        print("\033[?25h\033[?1049l", end="", flush=True)


def _coloured(text: str) -> str:
    """Return a text in colour where rich is installed."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return text
    shown = Text(text)
    for pattern, style in STYLES.items():
        shown.highlight_regex(pattern, style)
    with (console := Console()).capture() as capture:
        console.print(shown, end="", soft_wrap=True)
    return capture.get()


def _rates(rank: seen.Rank, before: looks.Jobs) -> dict[str, float]:
    """Return syncs, bytes and seconds of waiting per second since the last look."""
    old = next((old for old in before.get(rank.job, ()) if old.key == rank.key), rank)
    took = rank.at - old.at or math.inf
    return {
        "syncs_per_second": (rank.syncs - old.syncs) / took,
        "bytes_per_second": (rank.bytes - old.bytes) / took,
        "waiting": min(max(0.0, (rank.slept - old.slept) / took), 1.0),
    }


def missing(ranks: Sequence[seen.Rank]) -> list[int]:
    """Return the ranks without a process on the machines that are looked at, as far as that can be told."""
    first = ranks[0]
    if sum({rank.host: rank.near for rank in ranks}.values()) == first.size:
        return sorted({*range(first.size)} - {rank.rank for rank in ranks})
    return sorted({dead for rank in ranks for dead in rank.dead})


def _facts(job: str, ranks: Sequence[seen.Rank], before: looks.Jobs) -> dict[str, Any]:
    return {
        "job": job,
        "command": ranks[0].command,
        "size": ranks[0].size,
        "ranks": [_fields(rank) | _rates(rank, before) for rank in ranks],
        "missing": missing(ranks),
        "causes": list(causes(ranks, before)),
    }


def _fields(rank: seen.Rank) -> dict[str, Any]:
    return {key: getattr(rank, key) for key in FIELDS} | {"loss": _in_json(rank.loss)}


def _in_json(value: float | None) -> float | str | None:
    """Return a number, or as a string one that JSON does not have."""
    return value if value is None or math.isfinite(value) else str(value)


def _table(now: looks.Jobs, before: looks.Jobs, width: int) -> Iterator[str]:
    for job, ranks in now.items():
        yield title(job, ranks, width)
        for cause in causes(ranks, before):
            yield from folded(cause, width).split("\n")
        if marks := {rank.mark for rank in ranks if rank.mark}:
            yield f"mark: {', '.join(sorted(marks))}"[:width]
        rows = [COLUMNS, *(_row(rank, before) for rank in ranks)]
        over = sum(2 + max(map(len, column)) for column in zip(*rows, strict=True)) - 2 - width
        room = max(8, max(len(row[2]) for row in rows) - max(0, over))
        rows = [(*row[:2], row[2] if len(row[2]) <= room else row[2][: room - 1] + "…", *row[3:]) for row in rows]
        head, *lines = aligned(rows, left={2})
        yield head
        hosts = list(dict.fromkeys(rank.host for rank in ranks))
        for host in hosts:
            if len(hosts) > 1:
                yield f"on {host}:"
            yield from (line for rank, line in zip(ranks, lines, strict=True) if rank.host == host)
        yield ""


def title(job: str, ranks: Sequence[seen.Rank], width: int) -> str:
    """Return the line above what is shown of a job."""
    first = ranks[0]
    hosts = {rank.host for rank in ranks}
    where = first.host if len(hosts) == 1 else f"{len(hosts)} hosts"
    there = "" if len(ranks) == first.size else f", {len(ranks)} of them there"
    return f"job {job} on {where}: {counted(first.size, 'rank')}{there}: {first.command}"[:width]


def _row(rank: seen.Rank, before: looks.Jobs) -> tuple[str, ...]:
    syncs, sent, _ = _rates(rank, before).values()
    state = rank.state
    if state == "waiting":
        took = f"{span(rank.waited)} " if rank.waited >= LONG else ""
        state = f"waits {took}for {name(rank.waits_for).partition(' ')[2]}"
    return (
        str(rank.rank),
        str(rank.pid),
        state,
        f"{syncs:.3g}" if syncs < 1000 else f"{syncs:.0f}",
        size(sent),
        str(rank.clock),
        str(rank.age),
        "" if rank.loss is None else f"{rank.loss:.4g}",
        size(rank.memory),
    )


def causes(ranks: Sequence[seen.Rank], before: looks.Jobs) -> Iterator[str]:
    """Yield a sentence on each thing that keeps ranks from going on."""
    gone, deaths = set(missing(ranks) if ranks[0].near else ()), {dead for rank in ranks for dead in rank.dead}
    if dead := gone & deaths:
        yield f"{name(dead)} died; the others continue"
    if left := gone - deaths:
        yield f"{name(left)} left the job, or ended"
    for rank in ranks:
        if rank.state == "stopped":
            there = "" if rank.host == os.uname().nodename else f" on {rank.host}"
            yield f"rank {rank.rank} is stopped, by SIGSTOP or a debugger: kill -CONT {rank.pid}{there} resumes it"
    waits: dict[tuple[int, ...], list[seen.Rank]] = defaultdict(list)
    for rank in ranks:
        if rank.waited >= LONG:
            waits[tuple(rank.waits_for)].append(rank)
    for late, waiting in waits.items():
        longest = span(max(rank.waited for rank in waiting))
        where = f", in {waiting[0].place}" if waiting[0].place else ""
        verb = "have" if len(waiting) > 1 else "has"
        yield f"{name(rank.rank for rank in waiting)} {verb} waited {longest} for {name(late)}{where}"
    yield from sorted({rank.advice for rank in ranks if rank.advice})
    for rank in ranks:
        if any(rank.rank in late for late in waits) and rank.state != "stopped" and rank.place:
            yield f"rank {rank.rank} is {rank.state}; its last call: {rank.place}"
    shares = ((rank, _rates(rank, before)["waiting"]) for rank in ranks)
    often = {rank.rank: (share, set(rank.late)) for rank, share in shares if share >= OFTEN}
    if often and not waits and (slow := set.intersection(*(late for _, late in often.values())) - often.keys()):
        share = sum(share for share, _ in often.values()) / len(often)
        yield f"{name(often)} wait{'s'[: len(often) == 1]} {share:.0%} of the time for {name(slow)}"


def size(count: float) -> str:
    """Return so many bytes in the largest unit that fits."""
    unit = 0
    while count >= 999.5 and unit < 4:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g}{('', ' KB', ' MB', ' GB', ' TB')[unit]}"


def _follow(look: looks.Look, options: argparse.Namespace) -> int:
    """Print the events of all ranks until they have ended."""
    now = look.chosen()
    rings: dict[int, seen.Ring] = {}
    if not any(rank.room for ranks in now.values() for rank in ranks):
        print("malt top: these ranks keep no events: start the job with malt run --events 10000", file=sys.stderr)
        return 1
    while now:
        found: list[seen.Event] = []
        for rank in (rank for ranks in now.values() for rank in ranks if rank.room):
            with contextlib.suppress(OSError, ValueError):  # it has just ended
                rings[rank.pid] = rings.get(rank.pid) or seen.Ring(rank.pid)
                events, lost = rings[rank.pid].events()
                found += events
                if lost:
                    at = events[0].begin if events else rank.at
                    text = f"{lost} events were overwritten before they were read"
                    found.append(seen.Event(rank.rank, 0, "lost", at, 0.0, [], float(lost), text))
        for event in sorted(found, key=lambda event: event.begin):
            print(json.dumps({**event._asdict(), "value": _in_json(event.value)}) if options.json else _line(event))
        sys.stdout.flush()
        if options.once:
            return 0
        time.sleep(options.every)
        now = look.jobs()
    return 0


def _line(event: seen.Event) -> str:
    towards = {"wait": "for ", "fold": "from ", "send": "to "}.get(event.kind, "")
    words = towards + name(event.ranks) if event.ranks else seen.printable(event.text)
    if event.kind == "log":
        words += f"={event.value:.6g}"
    took = f"{event.seconds * 1000:9.3f} ms" if event.kind in ("call", "wait", "fold") else " " * 12
    return f"{event.begin:14.6f}  rank {event.rank:<4} {event.kind:5} {took}  {words}".rstrip()
