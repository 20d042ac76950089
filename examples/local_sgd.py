"""Local SGD with outer momentum: ranks average rarely, and the average has its own momentum.

    malt run -n 4 examples/local_sgd.py

Between two averages each rank takes many steps of its own. The mean distance that the
ranks have moved since the last average is then treated as one large gradient, and applied
with Nesterov's momentum. This is SlowMo (Wang et al., ICLR 2020) and, with another inner
optimizer, DiLoCo (Douillard et al., 2023), in a few lines around ``sync``. Both are for
neural networks; on this convex problem, whose steps decay, the plain average
(``--momentum 0``) is as good.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import malt
import splice
import svm


def main(argv: Sequence[str] | None = None) -> list[float]:
    """Train; return the loss over all training windows after each pass."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--k", type=int, default=3, help="longest k-mer")
    ask.add_argument("--passes", type=int, default=3, help="over the data")
    ask.add_argument("--every", type=int, default=10_000, help="examples of a rank between two averages")
    ask.add_argument("--momentum", type=float, default=0.2, help="of the outer step")
    ask.add_argument("--rate", type=float, default=1.0, help="of the outer step")
    opt = ask.parse_args(argv)

    letters, labels = malt.shard(*splice.shuffled())
    rows = splice.features(letters, opt.k)
    steps = malt.allreduce(len(rows) // opt.every, "min")  # the same on all ranks: each ends with an average

    v = malt.Vector(splice.parameters(opt.k))
    model, velocity = v.array.copy(), np.zeros_like(v.array)
    losses = []
    for done in range(opt.passes):
        for i in range(steps):
            part = slice(i * opt.every, (i + 1) * opt.every if i + 1 < steps else None)
            svm.sgd(v.array, rows[part], labels[part], done * len(rows) + i * opt.every)
            v.sync()  # the mean of all ranks
            moved = model - v.array
            velocity = opt.momentum * velocity + moved
            model -= opt.rate * (moved + opt.momentum * velocity)
            v.array[:] = model
        losses.append(float(malt.allreduce(svm.loss(model, rows, labels))))
        if malt.rank() == 0:
            print(f"after pass {done + 1}, {malt.size()} ranks: loss {losses[-1]:.4f}", flush=True)
    return losses


if __name__ == "__main__":
    main()
