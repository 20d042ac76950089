"""Train a linear SVM on real data, in one process and with several ranks, and compare: ``make demo``.

The loop of scikit-learn's ``partial_fit``, which is compiled and needs one thread, is what
people would keep; the same in plain Python stands beside it. Every entry sees the same
windows in the same shuffles; the time includes all communication. See ``worker`` for what is
timed and judged.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

import splice
from demo import picture, table
from demo.table import Entry
from demo.worker import Run
from malt._ranks.machine import cores

MODES = {"scikit-learn": (("all", "bsp"), ("halton", "ssp:2"), ("halton", "async")), "Python": (("all", "bsp"),)}
"""Of each program."""
GOAL = 2
"""Passes after which the serial run sets the target."""


def machine() -> str:
    """Say what this ran on."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{cores()} cores ({name}), Python {platform.python_version()}, numpy {np.__version__}"


def train(opt: argparse.Namespace, entry: Entry) -> None:
    """Run an entry in processes of its own, which fill it in."""
    name = f"{entry.program}-{entry.ranks}-{entry.graph or 'serial'}-{entry.consistency.replace(':', '')}"
    out = Path(opt.out, f"{name}.json").resolve()
    out.unlink(missing_ok=True)
    worker = ["demo.worker", str(out), f"--program={entry.program}", f"--k={opt.k}", f"--repeats={opt.repeats}"]
    worker += [f"--passes={opt.passes}", f"--goal={GOAL}", *([f"--rows={opt.rows}"] if opt.rows else [])]
    if entry.graph:
        command = [sys.executable, "-m", "malt", "run", "-n", str(entry.ranks), "-m", *worker]
        command += [f"--graph={entry.graph}", f"--consistency={entry.consistency}"]
    else:
        command = [sys.executable, "-m", *worker, "--serial"]
    code = subprocess.run(command, check=False, cwd=Path(__file__).parents[1]).returncode
    if code:
        sys.exit(f"demo: {entry} ended with exit code {code}; its message stands above")
    entry.runs += [Run(**run) for run in json.loads(out.read_text())]


def planned(program: str, ranks: Sequence[int]) -> list[Entry]:
    """Return the entries of a program, the serial one first."""
    modes = [(n, *mode) for n in ranks for mode in MODES[program]]
    return [Entry(*how, [], program) for how in [(1, "", ""), *modes]]


def main() -> None:
    """Run all entries, print the table, draw the picture."""
    ask = argparse.ArgumentParser(prog="make demo", description=__doc__)
    ask.add_argument("-n", type=int, nargs="+", default=[2, 4], metavar="RANKS", help="numbers of ranks [2 4]")
    ask.add_argument("--k", type=int, default=3, help="longest k-mer: 3 makes 8,424 parameters, 6 makes 531,432 [3]")
    ask.add_argument("--repeats", type=int, default=3, help="shuffles; the table shows medians [3]")
    ask.add_argument("--passes", type=float, default=2.5, help=f"over the data, at least {GOAL} [2.5]")
    ask.add_argument("--rows", type=int, help="use only so many windows")
    ask.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for the results [build/demo]")
    opt = ask.parse_args()
    if opt.passes < GOAL:
        ask.error(
            f"--passes {opt.passes}: the target is the serial run's loss after {GOAL} passes; give at least {GOAL}"
        )
    opt.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    rows = min(opt.rows or sys.maxsize, len(splice.read("train")[1]))
    print(f"{rows:,} windows, {splice.parameters(opt.k):,} parameters, {opt.passes} passes, {opt.repeats} shuffles")
    print(machine())
    plan = {program: planned(program, opt.n) for program in MODES}
    for number, entry in enumerate(chain(*plan.values()), 1):
        print(f"[{number}/{sum(map(len, plan.values()))}] {entry}", flush=True)
        train(opt, entry)

    told = []
    for serial, *others in plan.values():
        targets = [table.target(run, GOAL * rows) for run in serial.runs]
        lines = [table.row(each, serial, targets, cores()) for each in (serial, *others)]
        goals = ", ".join(f"{target:.4f}" for target in targets)
        told += [table.verdict(lines), table.text(lines), table.breakdown(others, serial, targets), f"target: {goals}"]
    (opt.out / "table.txt").write_text("\n\n".join([machine(), *told]) + "\n")
    first = plan["scikit-learn"]
    title = f"Linear SVM, {rows:,} DNA windows, {splice.parameters(opt.k):,} parameters; {machine()}\n{told[0]}"
    picture.draw(first, table.target(first[0].runs[0], GOAL * rows), title, opt.out / "demo.png")
    print("", *told, "", sep="\n\n")
    if max(opt.n) > cores():
        print(f"* more ranks than the {cores()} cores here: they take turns, so no speed-up can be expected")
    print(f"target: the loss of the same program in one process after {GOAL} passes + 1 %, for each shuffle")
    print("speed-up: serial time to target / time to target; in examples: the same, counted in examples per rank")
    print("us/example: a rank's own steps")
    print("waiting: share of a rank's time that it waited for others")
    print("serial / ranks: what the target would take if nothing were lost; statistics: what more examples take;")
    print("slower steps: the rest, where ranks share caches, memory or hyper-threads")
    print("MB sent: per rank and run; age: of folded updates, in syncs of 1,000 examples")
    print(f"{time.monotonic() - began:.0f} s in all; {opt.out}/demo.png and {opt.out}/table.txt show this")


if __name__ == "__main__":
    main()
