"""One average per pass over the data, the baseline that MALT calls MR-SVM (EuroSys 2015, section 6).

    malt run -n 4 examples/one_average_per_epoch.py

Each rank trains alone on its part, and at the end of each pass all ranks average their
models, as in a map-reduce job. This moves the fewest bytes and waits the least. Compare
it with ``svm.py``, which averages every 1,000 examples and learns more per pass.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import malt
import splice
import svm


def main(argv: Sequence[str] | None = None) -> list[float]:
    """Train with one average per pass; return the loss over all training windows after each."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--k", type=int, default=3, help="longest k-mer")
    ask.add_argument("--passes", type=int, default=3, help="over the data")
    opt = ask.parse_args(argv)

    letters, labels = malt.shard(*splice.shuffled())
    rows = splice.features(letters, opt.k)

    v = malt.Vector(splice.parameters(opt.k))
    losses = []
    for done in range(opt.passes):
        svm.sgd(v.array, rows, labels, done * len(rows))
        v.allreduce()
        losses.append(float(malt.allreduce(svm.loss(v.array, rows, labels))))
        if malt.rank() == 0:
            print(f"after pass {done + 1}, {malt.size()} ranks: loss {losses[-1]:.4f}", flush=True)
    return losses


if __name__ == "__main__":
    main()
