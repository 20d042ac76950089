"""Compare two graphs over a slow network: each rank sends to all others, or to a few.

    python examples/halton_vs_all.py

Simulates a network of 8 hosts on this machine, whose cables are so slow that sending a
model to the 7 others takes as long as computing a step, and trains the SVM of ``svm.py``
over it, one rank on each host, in three ways:

* ``all``, sent directly: a rank sends its model to the 7 others in every step;
* ``halton``, sent directly: it sends to 3 others, which pass its changes on to the rest;
* ``all`` in lock-step (``bsp``): the hosts compute the average together.

Prints a table and draws figure 11 of the MALT paper (EuroSys 2015) with the lock-step
average beside it. Like ``malt sim``, it needs Linux, iproute2, and root or user
namespaces.

The ranks share the processors of this machine, so the rate must fit the machine: a first
job, over cables without a limit, measures how long a step takes here with all ranks
running, and the rate of the second job follows from that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import malt
import splice
from demo import ways
from demo.table import Entry
from demo.ways import Turn
from demo.worker import Run, judge, train

FRAME, PAYLOAD = 1514, 1448
"""Bytes of an Ethernet frame, and how many of the model it carries."""

SLACK = 1.005
"""The loss that all have to reach is the highest of the final ones, times this."""


# ---- a rank, on a host of its own


def rank(opt: argparse.Namespace) -> None:
    """Train in all ways, turn by turn; rank 0 writes what came of it."""
    test_letters, test_labels = splice.read("test")
    test = splice.features(test_letters, opt.k), test_labels
    letters, labels = splice.read("train")
    letters, labels = letters[: opt.rows], labels[: opt.rows]
    told = []
    for seed in range(opt.turns):
        own_letters, own_labels = malt.shard(letters, labels, order="shuffle", seed=seed)
        rows = splice.features(own_letters, opt.k)
        steps = round(opt.passes * -(-len(letters) // malt.size() // opt.every))
        for graph, consistency in modes(opt):
            how = argparse.Namespace(**{**vars(opt), "graph": graph, "consistency": consistency})
            before = carried()
            timed = train(how, rows, own_labels)
            wire = float(malt.allreduce(carried() - before))
            told.append([asdict(judge(timed, rows, own_labels, test)), steps, wire])
    if malt.rank() == 0:
        opt.rank.write_text(json.dumps(told))


def modes(opt: argparse.Namespace) -> list[tuple[str, str]]:
    """Return graph and consistency of each way."""
    return [("all", opt.direct), ("halton", opt.direct), ("all", "bsp")]


def carried() -> int:
    """Return the bytes that this host has sent over its cable."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[9]) for line in file if line.split()[0] == "eth0:")


# ---- the network, and what comes out


def job(opt: argparse.Namespace, argv: Sequence[str], rate: float | None) -> list[list[Turn]]:
    """Run the ranks over cables of so many bits per second, or without a limit; return the turns of each way."""
    out = (opt.out / "turns.json").resolve()
    out.unlink(missing_ok=True)
    cables = [] if rate is None else ["--rate", f"{rate:.0f}bit"]
    sim = [sys.executable, "-m", "malt", "sim", "--hosts", str(opt.ranks), *cables]
    code = subprocess.run([*sim, __file__, *argv, f"--rank={out}"], check=False).returncode
    if code:
        sys.exit(f"halton_vs_all: the job ended with exit code {code}; its message stands above")
    told = [Turn(Run(**run), steps, wire) for run, steps, wire in json.loads(out.read_text())]
    return [told[i :: len(modes(opt))] for i in range(len(modes(opt)))]


def slow(opt: argparse.Namespace, argv: Sequence[str]) -> float:
    """Return the rate at which sending a model to all others takes `opt.ratio` times as long as a step computes."""
    turns = job(opt, [*argv, "--turns=1", "--passes=1"], None)[0]
    return float(opt.ratio * 8 * to_all(opt) / ways.computing(turns[0], opt.every))


def to_all(opt: argparse.Namespace) -> float:
    """Return the bytes that a cable carries when a model goes to all others."""
    return float((opt.ranks - 1) * 8 * splice.parameters(opt.k) * FRAME / PAYLOAD)


def main(argv: Sequence[str]) -> None:
    """Find the rate, train, show."""
    opt = options(argv)
    if opt.rank:
        rank(opt)
        return
    opt.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    if opt.rate is None:
        print(f"[1/2] cables without a limit: how long does a step of {opt.every:,} examples compute?", flush=True)
        opt.rate = slow(opt, argv) / 1e6
    print(f"[2/2] cables of {opt.rate:.4g} Mbit/s", flush=True)
    turns = job(opt, argv, opt.rate * 1e6)
    goals = [SLACK * max(way[turn].run.loss[-1] for way in turns) for turn in range(opt.turns)]
    entries = [Entry(opt.ranks, *mode, [t.run for t in done]) for mode, done in zip(modes(opt), turns, strict=True)]
    found = [ways.outcome(done, opt.every, goals) for done in turns]
    sending = 8e-3 * to_all(opt) / opt.rate
    print(f"\n{ways.table(entries, found)}\n")
    print(f"the loss: the highest of the final ones + {SLACK - 1:.1%}, {', '.join(f'{g:.4f}' for g in goals)}")
    print(f"a model to all others takes {sending:.1f} ms, {sending / found[0].computing:.2f} x what a step computes")
    print("KB/step: of models, by each rank; on cable: all that its host sent, with headers and the last average")
    title = f"Linear SVM, {splice.parameters(opt.k):,} parameters, {opt.ranks} hosts, cables of {opt.rate:.4g} Mbit/s"
    ways.draw(entries, found, goals[0], title, opt.out / "halton_vs_all.png")
    print(f"{time.monotonic() - began:.0f} s in all; {opt.out}/halton_vs_all.png shows this")


def options(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--ranks", type=int, default=8, help="hosts, with a rank each [8]")
    ask.add_argument("--rate", type=float, metavar="MBIT", help="of a cable, in Mbit/s; default: see --ratio")
    ask.add_argument("--ratio", type=float, default=1, help="sending to all over computing, to find a rate [1]")
    ask.add_argument("--direct", default="notify-ack", help="consistency where models are sent directly [notify-ack]")
    ask.add_argument("--k", type=int, default=3, help="longest k-mer: 3 makes 8,424 parameters, 6 makes 531,432 [3]")
    ask.add_argument("--every", type=int, default=5000, help="examples that a step learns [5000]")
    ask.add_argument("--passes", type=float, default=8, help="over the data [8]")
    ask.add_argument("--turns", type=int, default=3, help="in which the ways take turns; the table shows medians [3]")
    ask.add_argument("--rows", type=int, help="use only so many windows")
    ask.add_argument("--out", type=Path, default=Path("build/halton_vs_all"), help="folder for what comes out")
    ask.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    ask.set_defaults(program="Python", serial=False, goal=1)
    return ask.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
