"""The command behind `make bench-training`."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from malt._sim import SimError, isolate

from ..environments import BUILD
from ..net.hosts import hosts
from ..rows import Link
from ..turns import Plan
from . import show
from .race import INTERVALS, RATES, Race
from .tasks import TASKS

GBIT = 1e9


def main() -> None:
    """Race, and write what came out after each race."""
    ask = argparse.ArgumentParser("bench.training", description="How soon models are as good as they should be.")
    ask.add_argument("-n", type=int, nargs="+", default=[2, 4], metavar="RANKS", help="default: 2 4")
    ask.add_argument("--hosts", action="store_true", help="on so many simulated hosts instead, with 1 Gbit/s")
    ask.add_argument("--tasks", default="", metavar="WORD", help="only tasks with this word in their names")
    ask.add_argument("--contenders", nargs="*", default=[], metavar="NAME", help="only these")
    ask.add_argument("--starts", type=int, default=5, help="shuffles, each with a fresh start; default: %(default)s")
    ask.add_argument("--rows", type=int, help="learn only so many examples")
    ask.add_argument("--rates", type=float, nargs="+", default=RATES, help="factors to choose from")
    ask.add_argument("--intervals", type=int, nargs="+", default=INTERVALS, help="factors to choose from")
    ask.add_argument("--seed", type=int, default=int(time.time()), help="of the order; default: the time")
    ask.add_argument("--out", type=Path, default=BUILD / "training", help="folder for what comes out")
    opt = ask.parse_args()
    if opt.hosts:
        try:
            isolate()
        except SimError as error:
            sys.exit(f"bench: {error}")
    opt.out.mkdir(parents=True, exist_ok=True)
    plan = Plan(opt.starts, 1, opt.seed)
    for task in (task for name, task in TASKS.items() if opt.tasks in name):
        if why := task.missing():
            print(f"bench: without {task.name}: {why}", file=sys.stderr)
            continue
        for ranks in opt.n:
            with ExitStack() as stack:
                race = Race(task, ranks, opt.rows, opt.rates, opt.intervals)
                if opt.hosts:
                    there = stack.enter_context(hosts(ranks))
                    there.suit(Link(GBIT))
                    race.addresses, race.enter = there.addresses, there.enter
                found = race.run(plan, opt.contenders)
            print(show.markdown(found), flush=True)
            show.keep(opt.out, found)


if __name__ == "__main__":
    main()
