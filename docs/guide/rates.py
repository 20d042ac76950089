"""A linear SVM on the texts of RCV1 (MALT_DATA): step sizes with sparse vectors, and what ssp costs."""

import os
from pathlib import Path

import numpy as np

import malt

LAMBDA = 1e-4
EVERY = 100

folder = Path(os.environ["MALT_DATA"], "rcv1-ccat")
x, y = malt.load(folder / "train.svm.gz", order="stride", n_features=47_236)
whole = malt.load(folder / "train.svm.gz", shard=False, n_features=47_236) if malt.rank() == 0 else (x, y)


def sgd(w, rows, steps, shrink):
    """Take one step per row: hinge loss, with λ/2 |w|² if the model is to shrink."""
    scale = 1.0
    for i, step in zip(rows, steps, strict=True):
        part = slice(x.indptr[i], x.indptr[i + 1])
        at, values = x.indices[part], x.data[part]
        own = w[at]
        margin = y[i] * scale * (own @ values)
        scale *= 1 - step * LAMBDA if shrink else 1
        if margin < 1:
            w[at] = own + (step * y[i] / scale) * values
    w *= scale


def report(name, shrink, passes, times, **options):
    """Train with a vector of these options, and print the loss over all texts."""
    v = malt.Vector(x.shape[1], **options)
    for t in range(0, passes * len(y), EVERY):
        rows = np.arange(t, min(t + EVERY, passes * len(y))) % len(y)
        steps = 1 / (LAMBDA * (np.arange(t, t + rows.size) + 2500)) if shrink else rows.size * [1.0]
        sgd(v.array, rows, np.multiply(times, steps), shrink)
        v.sync()
    v.allreduce()
    if malt.rank() == 0:
        w = v.array
        loss = np.maximum(0, 1 - whole[1] * (whole[0] @ w)).mean() + (LAMBDA / 2 * (w @ w) if shrink else 0)
        print(f"{malt.size()} ranks, {name}: loss {loss:.4f}, norm {np.sqrt(w @ w):.1f}", flush=True)
    v.close()


for times in sorted({1, (malt.size() + 1) // 2, malt.size()}):
    report(f"whole vectors, step times {times}", False, 1, times)
    report(f"sparse='model', step times {times}", False, 1, times, sparse="model")
for consistency in "bsp", "ssp:2", "ssp:8":
    report(consistency, True, 2, 1, consistency=consistency)
