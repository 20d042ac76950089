"""Matrix factorisation of MovieLens ratings by mini-batches: stars = mean + biases + user · item."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import malt  # malt run -n 4 examples/mf.py
import movielens

FACTORS = 16  # and a bias, in the last column
BATCH = 64
REGULARISER = 0.05

Model = NDArray[np.float64]


def predict(model: Model, users: movielens.Numbers, items: movielens.Numbers, mean: float) -> movielens.Stars:
    """Return the expected stars; `users` and `items` are rows of `model`."""
    u, i = model[users], model[items]
    stars: movielens.Stars = mean + u[:, -1] + i[:, -1] + (u[:, :-1] * i[:, :-1]).sum(axis=1)
    return stars


def step(model: Model, users: movielens.Numbers, items: movielens.Numbers, error: movielens.Stars, rate: float) -> None:
    """Move the rows of one batch down the gradient of its squared error."""
    u, i = model[users], model[items]
    e = error[:, None]
    for rows, own, other in ((users, u, i), (items, i, u)):
        change = e * other - REGULARISER * own
        change[:, -1] = error - REGULARISER * own[:, -1]
        np.add.at(model, rows, rate * change)


def main(argv: Sequence[str] | None = None) -> Model:
    """Train, then test the model."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--passes", type=int, default=20, help="over the data")
    opt = ask.parse_args(argv)

    users, items, stars = movielens.shuffled()
    test = movielens.read("test")
    mean, shift = stars.mean(), users.max() + 1  # items have the rows behind those of the users
    model = np.random.default_rng(0).normal(0, 0.1, (shift + max(items.max(), test[1].max()) + 1, FACTORS + 1))
    model[:, -1] = 0
    users, items, stars = malt.shard(users, items, stars)

    v = malt.Vector(model, fold="sum-changes", consistency="async")
    model = v.array
    for done in range(opt.passes):
        for at in range(0, len(stars), BATCH):
            v.sync(every=50)  # what this rank has changed goes out, what the others have comes in
            u, i = users[at : at + BATCH], shift + items[at : at + BATCH]
            step(model, u, i, stars[at : at + BATCH] - predict(model, u, i, mean), 0.01 * 0.95**done)
    v.allreduce()  # all changes of all ranks

    error = np.sqrt(np.mean((test[2] - predict(model, test[0], shift + test[1], mean)) ** 2))
    print(f"RMSE {error:.4f} over {len(test[2])} test ratings")
    return model


if __name__ == "__main__":
    main()
