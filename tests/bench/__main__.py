"""The command behind `make bench` and `make bench-compare`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from malt._sim import SimError, isolate

from . import deaths, machine, plots, processes, table
from .environments import BUILD
from .net import rows as net
from .net.hosts import hosts
from .net.systems import systems as over_network
from .numbers import summary
from .rows import Row, rows, sizes, tiny
from .systems import alone, mortal, peers
from .turns import Plan, Result, measure
from .verdict import Verdict, judge, too_noisy, totals


def main() -> int:
    """Measure, show, and write what was found."""
    options = _parser().parse_args()
    if options.net:
        try:
            isolate()
        except SimError as error:
            sys.exit(f"bench: {error}")
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    options.out.mkdir(parents=True, exist_ok=True)
    state = {**machine.describe(), "busy": machine.busy()}
    cores = len(state["cores"])
    plan = Plan(options.starts, options.turns, options.seed)
    print(
        f"{state['processor']}, {cores} cores, Linux {state['kernel']}, Python {state['python']}; "
        f"load {state['load']:.1f}, {state['busy']:.1f} cores kept busy by others; "
        f"{plan.starts} starts of {plan.turns} turns, in the random order of --seed {plan.seed}"
    )
    print(table.HEAD, flush=True)
    found = _measured(options, plan, cores)
    samples = {result.row.key: result.samples for result in found}
    verdicts = [judge(result.row, result.samples, samples) for result in found]
    _sum_up(found, verdicts, max(state["busy"], machine.busy()))
    record = [_record(result, verdict) for result, verdict in zip(found, verdicts, strict=True)]
    file = options.out / "results.json"
    how = {"starts": plan.starts, "turns": plan.turns, "seed": plan.seed}
    file.write_text(json.dumps({"machine": state, **how, "rows": record}, indent=1) + "\n")
    (options.out / "table.md").write_text(table.markdown(found, verdicts))
    if options.sizes:
        (options.out / "sizes.md").write_text(table.sizes(found))
        print(table.sizes(found))
    if kills := [result for result in found if result.row.op in deaths.OPS]:
        print(deaths.write(kills, options.out))
    pictures = plots.draw(found, options.out)
    print(f"{file}, table.md, and {len(pictures)} pictures beside it")
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "bench", description="How fast MALT is beside this machine's limit, and beside others."
    )
    made.add_argument(
        "--compare", action="store_true", help="also measure Open MPI, MPICH, Intel MPI and programs by hand"
    )
    made.add_argument(
        "--net", action="store_true", help="measure over a simulated network instead, beside iperf3 and gloo"
    )
    made.add_argument(
        "--deaths",
        type=int,
        default=0,
        metavar="JOBS",
        help="measure on_death=continue instead: its cost, and how soon ranks go on after a kill, in so many jobs; "
        "with --net, after a kill and after a host is powered off",
    )
    made.add_argument("--sizes", action="store_true", help="measure averages of 4 B to 256 MB instead; writes sizes.md")
    made.add_argument("--tiny", action="store_true", help="one small row of each operation: shows that it works")
    made.add_argument("--rows", default="", metavar="WORD", help="only rows whose title has this word in it")
    made.add_argument("--starts", type=int, default=5, help="starts of each contender; default: %(default)s")
    made.add_argument("--turns", type=int, default=3, help="turns of each contender in a start; default: %(default)s")
    made.add_argument("--seed", type=int, default=int(time.time()), help="of the order; default: the time")
    made.add_argument("--cores", metavar="N,...", help="cores to use; default: all that may be used")
    made.add_argument("--out", type=Path, default=BUILD / "out", help="folder of results.json and the pictures")
    return made


def _measured(options: argparse.Namespace, plan: Plan, cores: int) -> list[Result]:
    found: list[Result] = []

    def say(result: Result) -> None:
        found.append(result)
        known = {each.row.key: each.samples for each in found}
        print(table.line(result, judge(result.row, result.samples, known)), flush=True)

    if options.net and options.deaths:
        with hosts(deaths.HOSTS) as there:
            for job in deaths.tiny_over_network() if options.tiny else deaths.jobs_over_network():
                if options.rows in job.title:
                    deaths.kill(job, options.deaths, say, there)
        return found
    if options.net:
        wanted = net.tiny() if options.tiny else net.rows()
        with hosts(max(row.ranks for row in wanted)) as there:
            chosen = [row for row in wanted if options.rows in row.title]
            systems = over_network(there.addresses)
            measure(chosen, systems, plan, cores, say, lambda row: there.suit(row.link), there.enter)
        if not options.rows:
            say(processes.go_tcp(plan))
        return found
    if options.deaths:
        cost, jobs = deaths.tiny() if options.tiny else (deaths.cost(cores), deaths.jobs())
        measure([row for row in cost if options.rows in row.title], mortal(), plan, cores, say)
        for job in (job for job in jobs if options.rows in job.title):
            deaths.kill(job, options.deaths, say)
        return found
    wanted = sizes(cores) if options.sizes else rows(cores)
    chosen = [row for row in (tiny(wanted, cores) if options.tiny else wanted) if options.rows in row.title]
    systems = alone() + (peers() if options.compare else [])
    measure(chosen, systems, plan, cores, say)
    if not options.rows and not options.sizes:
        for result in processes.starts(plan):
            say(result)
        if not options.tiny:
            say(processes.go(plan))
    return found


def _sum_up(found: list[Result], verdicts: list[Verdict], busy: float) -> None:
    print()
    print(f"{totals(verdicts)}; {len(found)} rows in all.")
    if figures := table.detail(found):
        print("\n" + figures + "\n")
    for row in _crossover(found):
        print(f"sparse is as fast as dense up to a density of about {row.options['density']:.1%} (of those measured)")
    if noise := too_noisy(verdicts, busy):
        print(noise)


def _crossover(found: list[Result]) -> list[Row]:
    """Return the densest row at which a sparse exchange takes no longer than a dense one, if there is one."""
    cheaper = []
    for result in found:
        own, dense = result.samples.get("malt"), result.samples.get("limit")
        if result.row.op == "sparse" and own and dense:
            # A row of one number is sent with its index, which is as long.
            sent = 2 * result.row.options["density"]
            if summary(own).median * sent <= summary(dense).median:
                cheaper.append(result.row)
    return sorted(cheaper, key=lambda row: float(row.options["density"]))[-1:]


def _record(result: Result, verdict: Verdict) -> dict[str, Any]:
    row = result.row
    return {
        "key": row.key,
        "title": row.title,
        "ranks": row.ranks,
        "bytes": row.size,
        "unit": row.unit,
        "baseline": row.baseline,
        "samples": result.samples,
        "turns": result.turns,
        "summary": {name: summary(values)._asdict() for name, values in result.samples.items()},
        "left_out": result.left_out,
        "best_peer": verdict.peer,
        "to_peer": verdict.to_peer and verdict.to_peer._asdict(),
        "to_limit": verdict.to_limit and verdict.to_limit._asdict(),
        "to_itself": verdict.to_itself and verdict.to_itself._asdict(),
        "demands": verdict.demands,
    }


if __name__ == "__main__":
    sys.exit(main())
