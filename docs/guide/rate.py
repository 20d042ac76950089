"""One pass of SGD over the same rows: the step as it was, and times the number of ranks."""

import numpy as np

import malt

rng = np.random.default_rng(0)
truth = rng.normal(size=20)
x = rng.normal(size=(8_000, 20))
y = x @ truth + 0.1 * rng.normal(size=len(x))


def trained(step):
    v = malt.Vector(20)
    w = v.array
    for a, b in zip(*malt.shard(x, y), strict=True):
        w -= step * (a @ w - b) * a
        v.sync(every=10)
    v.allreduce()
    return np.square(x @ w - y).mean()


for times in dict.fromkeys([1, malt.size()]):
    error = trained(0.0002 * times)
    if malt.rank() == 0:
        print(f"ranks {malt.size()}, step times {times}: mean squared error {error:.3f}")
