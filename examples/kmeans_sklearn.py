"""Kinds of DNA windows: mini-batch k-means over how often each triplet of letters occurs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

import malt  # malt run -n 4 examples/kmeans_sklearn.py
import splice

BATCH = 2000


def triplets(letters: splice.Letters) -> NDArray[np.float32]:
    """Return how often each of the 64 triplets occurs in each window."""
    codes = letters[:, :-2] * np.uint8(16) + letters[:, 1:-1] * np.uint8(4) + letters[:, 2:]
    return np.stack([(codes == code).sum(axis=1) for code in range(64)], axis=1).astype(np.float32)


def main(argv: Sequence[str] | None = None) -> NDArray[np.float32]:
    """Find the centres, then say how far test windows are from them."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--clusters", type=int, default=8, help="number of centres")
    ask.add_argument("--rows", type=int, default=60_000, help="windows to look at")
    opt = ask.parse_args(argv)

    letters, _ = splice.shuffled()
    counts = triplets(malt.shard(letters[: opt.rows]))

    model = MiniBatchKMeans(opt.clusters, random_state=0, n_init=1)
    v = malt.sklearn.Vector(model)
    for i in range(0, len(counts), BATCH):
        model.partial_fit(counts[i : i + BATCH])
        v.sync()
    v.allreduce()

    test = triplets(splice.read("test")[0][:5000])
    print(f"mean squared distance to the nearest of {opt.clusters} centres: {-model.score(test) / len(test):.2f}")
    return np.asarray(model.cluster_centers_)


if __name__ == "__main__":
    main()
