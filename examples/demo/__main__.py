"""Train a linear SVM on real data, serially and with several ranks, and compare: ``make demo``.

Every entry sees the same windows in the same shuffles and takes the same steps;
the time includes all communication. See ``worker`` for what is timed and judged.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import splice
from demo import picture, table
from demo.table import Entry
from demo.worker import Run
from malt._ranks.machine import cores

MODES = (("all", "bsp"), ("halton", "ssp:2"), ("halton", "async"))
GOAL = 2
"""Passes after which the serial run sets the target."""


def machine() -> str:
    """Say what this ran on."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{cores()} cores ({name}), Python {platform.python_version()}, numpy {np.__version__}"


def entry(opt: argparse.Namespace, ranks: int, graph: str, consistency: str) -> Entry:
    """Run one entry in processes of its own."""
    out = Path(opt.out, f"{ranks}-{graph or 'serial'}-{consistency.replace(':', '')}.json").resolve()
    out.unlink(missing_ok=True)
    worker = [str(out), f"--k={opt.k}", f"--repeats={opt.repeats}", f"--passes={opt.passes}", f"--goal={GOAL}"]
    worker += [f"--rows={opt.rows}"] if opt.rows else []
    if graph:
        command = [sys.executable, "-m", "malt", "run", "-n", str(ranks), "-m", "demo.worker"]
        command += [*worker, f"--graph={graph}", f"--consistency={consistency}"]
    else:
        command = [sys.executable, "-m", "demo.worker", *worker, "--serial"]
    code = subprocess.run(command, check=False, cwd=Path(__file__).parents[1]).returncode
    if code:
        sys.exit(f"demo: {Entry(ranks, graph, consistency, [])} ended with exit code {code}; its message stands above")
    return Entry(ranks, graph, consistency, [Run(**run) for run in json.loads(out.read_text())])


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
    plan = [(1, "", ""), *((n, *mode) for n in opt.n for mode in MODES)]
    entries: list[Entry] = []
    for number, what in enumerate(plan, 1):
        print(f"[{number}/{len(plan)}] {Entry(*what, [])}", flush=True)
        entries.append(entry(opt, *what))

    targets = [table.target(run, GOAL * rows) for run in entries[0].runs]
    rows_of = [table.row(e, entries[0], targets, cores()) for e in entries]
    shown, verdict = table.text(rows_of), table.verdict(rows_of)
    (opt.out / "table.txt").write_text(f"{machine()}\n\n{verdict}\n\n{shown}\n")
    title = f"Linear SVM, {rows:,} DNA windows, {splice.parameters(opt.k):,} parameters; {machine()}\n{verdict}"
    picture.draw(entries, targets[0], title, opt.out / "demo.png")
    print(f"\n{shown}\n\n{verdict}\n")
    if max(opt.n) > cores():
        print(f"* more ranks than the {cores()} cores here: they take turns, so no speed-up can be expected")
    print(f"target: the serial run's loss after {GOAL} passes + 1 % = {', '.join(f'{t:.4f}' for t in targets)}")
    print("speed-up: serial time to target / time to target; in examples: the same, counted in examples per rank")
    print("us/example: a rank's own steps; above the serial run's where ranks share caches, memory or hyper-threads")
    print("waiting: share of a rank's time that it waited for others")
    print("MB sent: per rank and run; age: of folded updates, in syncs of 1,000 examples")
    print(f"{time.monotonic() - began:.0f} s in all; {opt.out}/demo.png and {opt.out}/table.txt show this")


if __name__ == "__main__":
    main()
