"""A linear SVM on DNA windows by plain one-sample SGD: mean hinge loss + λ/2 ‖w‖²."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import malt  # malt run -n 4 examples/svm.py
import splice

LAMBDA = 1e-5
EVERY = 1000  # examples that are learnt at a stretch

Model = NDArray[np.float64]


def sgd(w: Model, rows: splice.Rows, labels: splice.Labels, seen: int) -> None:
    """Take one step per example, in order, and leave the new model in `w`.

    Parameters
    ----------
    w : float64 array (parameters,)
    rows : int32 array (n, m)
        Per example its features, all with the value 1/sqrt(m).
    labels : float64 array (n,)
        +1 or -1.
    seen : int
        Examples that were learnt before: the step is 0.5 / (λ (seen + 2500)).

    Notes
    -----
    The regulariser shrinks all of `w` in every step. That is kept as one factor,
    so that a step costs as much as the example has features: the model is
    ``scale * w``. The factor is multiplied in before the function returns.
    """
    x = np.full(rows.shape[1], rows.shape[1] ** -0.5)
    steps = 0.5 / (LAMBDA * (np.arange(seen, seen + len(rows)) + 2500.0))
    scale = 1.0
    for row, label, step in zip(rows.astype(np.intp), labels.tolist(), steps.tolist(), strict=True):
        own = w[row]
        margin = label * scale * (own @ x)
        scale *= 1 - step * LAMBDA
        if margin < 1:
            w[row] = own + (step * label / scale) * x
    w *= scale


def scores(w: Model, rows: splice.Rows) -> NDArray[np.float64]:
    """Return w·x for every row."""
    x = np.full(rows.shape[1], rows.shape[1] ** -0.5)
    return np.concatenate([w.take(rows[i : i + 256]) @ x for i in range(0, len(rows), 256)])


def loss(w: Model, rows: splice.Rows, labels: splice.Labels) -> float:
    """Return the objective over `rows`."""
    return float(np.maximum(0, 1 - labels * scores(w, rows)).mean() + LAMBDA / 2 * (w @ w))


def main(argv: Sequence[str] | None = None) -> Model:
    """Train, then test the model; returns it."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--k", type=int, default=3, help="longest k-mer")
    ask.add_argument("--passes", type=int, default=2, help="over the data")
    ask.add_argument("--graph", default="all", help="who sends to whom")
    ask.add_argument("--consistency", default="bsp", help="how far ranks may drift apart")
    opt = ask.parse_args(argv)

    letters, labels = malt.shard(*splice.shuffled())
    rows = splice.features(letters, opt.k)

    v = malt.Vector(splice.parameters(opt.k), graph=opt.graph, consistency=opt.consistency)
    w = v.array
    for done in range(opt.passes):
        for i in range(0, len(rows), EVERY):
            part = slice(i, i + EVERY)
            sgd(w, rows[part], labels[part], done * len(rows) + i)
            v.sync()
    v.allreduce()

    letters, labels = splice.read("test")
    right = np.sign(scores(w, splice.features(letters, opt.k))) == labels
    print(f"rank {malt.rank()} of {malt.size()}: {right.mean():.4f} of {right.size} test windows are right")
    return w


if __name__ == "__main__":
    main()
