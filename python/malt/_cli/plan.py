"""``malt plan``: which graph and consistency to take, and whether more ranks will pay."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from malt._cli.bench import Report, measure, size_of
from malt._cli.forecast import SLACK, WAYS, WORTH, Figures, Forecast, Job, forecasts
from malt._cli.options import TIMES, Parser, UsageError, delay, quantity, rate, unfit, whole
from malt._cli.wrap import aligned, columns, counted, folded, named
from malt._ranks import machine
from malt._ranks.room import MOST

USAGE = "malt plan --bytes SIZE --step TIME --hosts HOSTSxRANKS [--rate RATE] [--delay TIME] [--json]"

RATE, DELAY = 1e9, 100e-6
"""Of a network that is not described."""

DESCRIPTION = """\
Predicts, without a job, how long a step with its sync will take, what it will send, and how
much memory a rank will hold: for a vector of so many bytes, for loops that compute so long
between two syncs, and for each way that the guide compares ("malt explain choosing"). The
way to take is in the first row: the strictest of the ways within 5 % of the fastest.

The figures of this machine are those of malt bench, measured now or read from a file
that malt bench --json wrote. The hosts are assumed to be like this one, with equally
fast ranks. malt doctor -H a,b measures rate and delay of a network."""

EXAMPLES = """\
  malt plan --bytes 4MiB --step 120ms --hosts 8x4 --rate 10Gbit
  malt plan --bytes 4MiB --step 120ms --hosts 1x4
  malt bench --json bench.json
  malt plan --bytes 64KiB --step 2ms --hosts 4,4,2 --bench bench.json --json
"""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("plan", USAGE, DESCRIPTION, EXAMPLES)
    made.add_argument("--bytes", type=size_of, metavar="SIZE", help="of the vector, such as 4MiB")
    made.add_argument("--step", type=_step, metavar="TIME", help="that a rank computes before each sync, such as 120ms")
    made.add_argument("--hosts", type=_hosts, metavar="HOSTSxRANKS", help="8x4: 8 hosts with 4 ranks each; or 4,4,2")
    made.add_argument("--rate", type=rate, metavar="RATE", help="of a host's cable in each direction; default: 1Gbit")
    made.add_argument("--delay", type=delay, metavar="TIME", help="from a host to another; default: 100us")
    made.add_argument("--cores", type=_cores, metavar="CORES", help="of each host; default: one for each rank")
    made.add_argument("--bench", metavar="FILE", help="what malt bench --json has written; default: measure now")
    made.add_argument("--json", action="store_true", help="print all predictions, in bytes and seconds")
    return made


def _step(text: str) -> float:
    return quantity(text, TIMES, "time", "us, ms or s", "120ms", 1e-9, 1e6)


def _cores(text: str) -> int:
    return whole(text, 1, 1 << 16, "number of cores", "--cores 8")


def _hosts(text: str) -> list[int]:
    words = text.lower().split("x")
    if len(words) == 2:
        ranks = whole(words[1], 1, MOST, "number of ranks", "8x4")
        found = [ranks] * whole(words[0], 1, MOST, "number of hosts", "8x4")
    else:
        found = [whole(word, 1, MOST, "number of ranks", "8x4 or 4,4,2") for word in text.split(",")]
    if not 2 <= sum(found) <= MOST:
        raise unfit(f"{text!r} is {counted(sum(found), 'rank')}", f"expected 2 to {MOST}, such as 8x4")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    for name, such in ("bytes", "4MiB"), ("step", "120ms"), ("hosts", "8x4"):
        if getattr(options, name) is None:
            parse.error(f"--{name} is missing", do=f"Pass it, such as --{name} {such}.")

    late = DELAY if options.delay is None else options.delay
    job = Job(options.bytes, options.step, options.hosts, options.rate or RATE, late, options.cores)
    results, source = _read(options.bench) if options.bench else _measured(job)
    try:
        figures = Figures(results)
    except (KeyError, TypeError, ValueError, IndexError):
        parse.error(f"{source} lacks figures", "expected a file of this version's malt bench", "Run malt bench --json.")
    found = forecasts(job, figures)
    if options.json:
        told = [one._asdict() | {"links": [[*pair, sent] for pair, sent in one.links.items()]} for one in found]
        json.dump({"figures": source, "job": job._asdict(), "ways": told}, sys.stdout, indent=1)
        print()
    else:
        given = ("rate", "delay") if len(job.hosts) > 1 else ()
        print("\n".join(_text(job, found, source, [f"--{name}" for name in given if getattr(options, name) is None])))
    return 0


# ------------------------------------------------------------------ the figures


def _read(path: str) -> tuple[list[dict[str, Any]], str]:
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        age = time.time() - os.stat(path).st_mtime
    except (OSError, ValueError) as error:
        raise UsageError("malt plan", f"--bench {path!r} cannot be read", str(error)) from None
    return results, f"{path}, {age / 86400:.0f} days old"


def _measured(job: Job) -> tuple[list[dict[str, Any]], str]:
    count = max(2, min(*job.hosts, machine.cores()))
    report = Report(count, shows=False)
    print("malt plan: measures this machine, for some seconds (--bench FILE reads figures)", file=sys.stderr)
    if measure(count, [4096, job.bytes], report):
        raise UsageError("malt plan", "this machine could not be measured", do="Run malt bench.")
    return report.results, f"measured now, with {count} ranks of this machine"


# ------------------------------------------------------------------ what is said

COLUMNS = ("graph", "consistency", "step", "speed-up", "host sends", "memory")


def _text(job: Job, found: Sequence[Forecast], source: str, assumed: Sequence[str]) -> Iterator[str]:
    hosts, several = job.hosts, len(job.hosts) > 1
    ranks = f"{len(hosts)}x{hosts[0]}" if len(set(hosts)) == 1 else ",".join(map(str, hosts))
    yield f"{named(job.bytes)}, steps of {_time(job.step)}, hosts {ranks}" + (
        f", cables of {job.rate / 1e6:g} Mbit/s, delay {_time(job.delay)}" if several else ""
    )
    yield f"figures: {source}" + (f"; assumed: {' and '.join(assumed)}" if assumed else "")
    yield ""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for one in found:
        times = [_time(one.seconds), f"{one.speedup:.1f}"]
        rows.append((one.graph, one.consistency, *times, named(one.sent) if several else "-", named(one.memory)))
    yield from (*aligned(rows, left={0, 1}), "")
    yield from folded(" ".join(_sentences(job, found)), columns(1, 100)).splitlines()


def _sentences(job: Job, found: Sequence[Forecast]) -> Iterator[str]:
    """Yield which way to take, why, and whether it pays."""
    best, fastest = found[0], min(found, key=lambda one: one.seconds)
    if best.seconds <= fastest.seconds * WORTH:
        stricter = "" if best.consistency == next(iter(SLACK)) else ", and all stricter ways are slower"
        yield f"Take {best.graph}, {best.consistency}: no way is more than {WORTH - 1:.0%} faster{stricter}."
    else:
        yield (
            f"Take {best.graph}, {best.consistency}. {fastest.graph}, {fastest.consistency} is faster only because "
            f"the cables carry one update in {fastest.age:.0f}."
        )
    ranks = sum(job.hosts)
    yield f"{ranks} ranks compute {best.speedup:.1f} steps in the time in which one rank computes one."
    default = next(one for one in found if (one.graph, one.consistency) == WAYS[0])
    every = math.ceil(9 * (default.seconds - job.step) / job.step)
    if every > 1:
        yield f"With {', '.join(WAYS[0])} and sync(every={every}) they compute about {0.9 * ranks:.1f}."


def _time(seconds: float) -> str:
    unit, by = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{seconds * by:.3g} {unit}"
