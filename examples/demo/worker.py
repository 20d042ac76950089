"""Trains one entry of the demo's table, as the serial program or as a rank, and writes down what came of it.

Time
----
The clock of a run starts when every rank has its data and ends when its last
allreduce returns. So it holds the making of the vector, every step, every
exchange and every wait; it does not hold the start of Python, nor the expansion
of the features, which the serial program pays for as well. Copies of the model
are taken as the run goes, with the clock stopped, and are judged afterwards.

Loss
----
The model that the job would have delivered, had it ended at that point with its
allreduce: the mean of the copies that all ranks took after the same number of
steps, at the time at which the last of them took it, plus what the allreduce
costs. The loss is the whole objective over all training windows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import malt
import splice
import svm

SPACING = 8000
"""Examples, of all ranks together, between two copies of the model."""


@dataclass
class Run:
    """One training run. The lists have one entry per copy of the model."""

    seconds: list[float]
    """Since the start, by the clock of the slowest rank."""
    examples: list[int]
    """Learnt by all ranks together."""
    loss: list[float]
    accuracy: float
    """Of the final model, over the test windows."""
    step: float
    """Microseconds that an example took a rank, without the exchange; mean over the ranks."""
    waiting: float
    """Share of the time that a rank waited for others; mean over the ranks."""
    exchange: float
    """Share that it was in ``sync`` besides; mean over the ranks."""
    sent: float
    """Megabytes per rank, in scatters."""
    folded: int
    """Updates, by all ranks together."""
    age: float
    """Mean of the folded updates' ages, in syncs."""


@dataclass
class Timed:
    """What one rank saw while the clock ran."""

    models: NDArray[np.float64]
    seconds: list[float]
    examples: list[int]
    closing: float
    computing: float
    waiting: float
    inside: float
    edges: tuple[malt.Edge, ...]
    """What went to and came from each neighbour."""


Model = Callable[[], NDArray[np.float64]]
Learn = Callable[[slice, int], None]
"""Learns a slice of the examples, so many examples after the first one."""


Begin = Callable[[argparse.Namespace, splice.Rows, splice.Labels], tuple[Any, Model, Learn]]
"""Makes the vector, which is None in the serial program, and a model of zeros."""


def python_loop() -> Begin:
    """Return how the loop of `svm.main` begins."""

    def begin(opt: argparse.Namespace, rows: splice.Rows, labels: splice.Labels) -> tuple[Any, Model, Learn]:
        zeros = np.zeros(splice.parameters(opt.k))
        v = None if opt.serial else malt.Vector(zeros, graph=opt.graph, consistency=opt.consistency)
        w = zeros if v is None else v.array
        return v, lambda: w, lambda part, seen: svm.sgd(w, rows[part], labels[part], seen)

    return begin


def partial_fit() -> Begin:
    """Return how a loop of scikit-learn begins, which has been imported by then."""
    from scipy.sparse import csr_array
    from sklearn.linear_model import SGDClassifier

    import malt.sklearn

    def begin(opt: argparse.Namespace, rows: splice.Rows, labels: splice.Labels) -> tuple[Any, Model, Learn]:
        model = SGDClassifier(loss="hinge", alpha=svm.LAMBDA, fit_intercept=False, shuffle=False)
        v = None if opt.serial else malt.sklearn.Vector(model, graph=opt.graph, consistency=opt.consistency)
        width = rows.shape[1]
        ends = np.arange(0, (2 * opt.every + 1) * width, width, dtype=np.int32)  # the last part may be that long
        ones = np.full(ends[-1], width**-0.5)

        def learn(part: slice, _: int) -> None:
            own, which = rows[part], labels[part]
            shape = len(own), splice.parameters(opt.k)
            x = csr_array((ones[: own.size], own.reshape(-1), ends[: len(own) + 1]), shape)
            model.partial_fit(x, which, classes=[-1.0, 1.0])

        return v, lambda: model.coef_[0], learn

    return begin


PROGRAMS = {"scikit-learn": partial_fit, "Python": python_loop}


def train(opt: argparse.Namespace, rows: splice.Rows, labels: splice.Labels) -> Timed:
    """Train with the clock running: a user's loop with a stopwatch."""
    per_pass = -(-int(malt.allreduce(len(rows), "min")) // opt.every)
    steps = round(opt.passes * per_pass)
    spacing = max(1, round(SPACING / opt.every / malt.size()))
    keep = sorted({*range(spacing, steps, spacing), opt.goal * per_pass} - {steps})
    models = np.ones((len(keep) + 1, splice.parameters(opt.k)))  # ones: has its memory before the clock starts
    seconds: list[float] = []
    examples: list[int] = []
    seen = 0
    computing = waiting = inside = 0.0
    begin = PROGRAMS[opt.program]()
    malt.barrier()

    start = time.perf_counter()
    v, model, learn = begin(opt, rows, labels)
    for step in range(1, steps + 1):
        i = (step - 1) % per_pass
        part = slice(i * opt.every, (i + 1) * opt.every if i + 1 < per_pass else None)
        began = time.perf_counter()
        learn(part, seen)
        learnt = time.perf_counter()
        computing += learnt - began
        seen += len(labels[part])
        if v is not None:
            v.sync()
            inside += time.perf_counter() - learnt
        if step in keep:
            now = time.perf_counter()
            models[len(seconds)] = model()
            seconds.append(now - start)
            examples.append(seen)
            start += time.perf_counter() - now
    before = time.perf_counter()
    if v is not None:
        v.allreduce()
    now = time.perf_counter()
    models[-1] = model()
    edges: tuple[malt.Edge, ...] = ()
    if v is not None:
        stats = v.stats()
        edges, waiting = stats.edges, stats.wait_seconds
        v.close()
    return Timed(models, [*seconds, before - start], [*examples, seen], now - before, computing, waiting, inside, edges)


def judge(run: Timed, rows: splice.Rows, labels: splice.Labels, test: tuple[splice.Rows, splice.Labels]) -> Run:
    """Judge what all ranks kept; each goes through its own part of the data."""
    losses = []
    for own in run.models:
        model = malt.allreduce(own)
        hinge = np.maximum(0, 1 - labels * svm.scores(model, rows)).sum()
        hinge, count = malt.allreduce(np.array([hinge, len(labels)]), "sum")
        losses.append(float(hinge / count + svm.LAMBDA / 2 * (model @ model)))
    closing = float(malt.allreduce(run.closing, "min"))
    seconds = malt.allreduce(np.array(run.seconds), "max") + closing
    examples = malt.allreduce(np.array(run.examples, np.float64), "sum")
    accuracy = float((np.sign(svm.scores(model, test[0])) == test[1]).mean())
    folded = [(e.folded_messages, e.age_mean) for e in run.edges if e.folded_messages]
    all_folded = [edge for rank in malt.allgather(folded) for edge in rank]
    updates = sum(count for count, _ in all_folded)
    sent = float(malt.allreduce(sum(e.sent_bytes for e in run.edges) / 1e6))
    step = float(malt.allreduce(1e6 * run.computing / run.examples[-1]))
    shares = malt.allreduce(np.array([run.waiting, run.inside]) / (run.seconds[-1] + run.closing))
    waiting, inside = shares.tolist()
    return Run(
        seconds=seconds.tolist(),
        examples=examples.astype(int).tolist(),
        loss=losses,
        accuracy=accuracy,
        step=step,
        waiting=waiting,
        exchange=max(0.0, inside - waiting),
        sent=sent,
        folded=updates,
        age=sum(count * mean for count, mean in all_folded) / max(updates, 1),
    )


def main() -> None:
    """Train as often as asked, each time with another shuffle; rank 0 writes the runs."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("out", type=Path, help="JSON file for the runs")
    ask.add_argument("--program", choices=PROGRAMS, default="Python", help="what learns [Python]")
    ask.add_argument("--serial", action="store_true", help="train without MALT")
    ask.add_argument("--graph", default="all")
    ask.add_argument("--consistency", default="bsp")
    ask.add_argument("--k", type=int, default=3, help="longest k-mer")
    ask.add_argument("--passes", type=float, default=2.5, help="over the data")
    ask.add_argument("--goal", type=int, default=2, help="passes after which the serial run sets the target")
    ask.add_argument("--repeats", type=int, default=3)
    ask.add_argument("--every", type=int, default=svm.EVERY, help="examples between two exchanges")
    ask.add_argument("--rows", type=int, default=None, help="use only so many windows")
    opt = ask.parse_args()

    letters, labels = splice.read("train")
    letters, labels = letters[: opt.rows], labels[: opt.rows]
    test_letters, test_labels = splice.read("test")
    test = splice.features(test_letters, opt.k), test_labels
    runs = []
    for repeat in range(opt.repeats):
        own_letters, own_labels = malt.shard(letters, labels, order="shuffle", seed=repeat)
        rows = splice.features(own_letters, opt.k)
        timed = train(opt, rows, own_labels)
        runs.append(judge(timed, rows, own_labels, test))
        if malt.rank() == 0:
            last = runs[-1]
            print(f"  run {repeat + 1}: {last.seconds[-1]:.2f} s, loss {last.loss[-1]:.4f}", flush=True)
    if malt.rank() == 0:
        opt.out.write_text(json.dumps([asdict(run) for run in runs]))


if __name__ == "__main__":
    main()
