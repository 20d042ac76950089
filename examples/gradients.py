"""Logistic regression on DNA windows by mini-batches: the mean gradient of a batch, and momentum."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import malt  # malt run -n 4 examples/gradients.py
import splice

BATCH = 512
RATE = 20.0
MOMENTUM = 0.9

Model = NDArray[np.float64]


def gradient(w: Model, rows: splice.Rows, labels: splice.Labels) -> Model:
    """Return the mean gradient of log(1 + exp(-y w·x)), every feature of `rows` being 1/sqrt(m)."""
    x = rows.shape[1] ** -0.5
    push = -labels / (1 + np.exp(labels * x * w[rows].sum(axis=1)))
    g = np.zeros_like(w)
    np.add.at(g, rows, (push * x / len(rows))[:, None])
    return g


def main(argv: Sequence[str] | None = None) -> Model:
    """Train, then test the model."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--k", type=int, default=2, help="longest k-mer")
    ask.add_argument("--passes", type=int, default=3, help="over the data")
    opt = ask.parse_args(argv)

    letters, labels = malt.shard(*splice.shuffled())
    rows = splice.features(letters, opt.k)
    batch = BATCH // malt.size()  # of this rank: together they are the serial program's

    w = np.zeros(splice.parameters(opt.k))
    v = malt.Vector(len(w))
    g = v.array
    velocity = np.zeros_like(w)
    for _ in range(opt.passes):
        for i in range(0, len(rows), batch):
            g[:] = gradient(w, rows[i : i + batch], labels[i : i + batch])
            v.sync()
            velocity = MOMENTUM * velocity - RATE * g
            w += velocity

    letters, labels = splice.read("test")
    right = np.sign(w[splice.features(letters, opt.k)].sum(axis=1)) == labels
    print(f"rank {malt.rank()} of {malt.size()}: {right.mean():.4f} of {right.size} test windows are right")
    return w


if __name__ == "__main__":
    main()
