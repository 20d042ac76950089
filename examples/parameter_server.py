"""A parameter server with the graph ``shards:1``: rank 0 keeps the model, and the other ranks work.

    malt run -n 5 examples/parameter_server.py        four workers

Workers learn from 1,000 examples and push what they have changed to rank 0, which adds it up and
sends the sum back. A thread of MALT does that, so rank 0 goes to the end at once, where it
stays until the workers are there. With ``ssp:2`` a worker waits only if another one is more than
two syncs behind. All bytes go through rank 0. With ``shards`` instead of ``shards:1`` every rank keeps
a part of the model, and none has to carry all bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import malt
import splice
import svm


def main(argv: Sequence[str] | None = None) -> svm.Model:
    """Serve or work, as the rank says; return the final model."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--k", type=int, default=3, help="longest k-mer")
    ask.add_argument("--passes", type=int, default=2, help="over the data")
    opt = ask.parse_args(argv)

    workers = max(1, malt.size() - 1)
    server = malt.size() > 1 and malt.rank() == 0
    mine = slice(max(0, malt.rank() - 1), None, workers)
    letters, labels = splice.shuffled()
    rows, labels = splice.features(letters[mine], opt.k), labels[mine]

    v = malt.Vector(splice.parameters(opt.k), fold="sum-changes", graph="shards:1", consistency="ssp:2")
    for done in range(0 if server else opt.passes):
        for at in range(0, len(rows), svm.EVERY):
            part = slice(at, at + svm.EVERY)
            svm.sgd(v.array, rows[part], labels[part], done * len(rows) + at)
            v.sync(weight=1 / workers)
    v.allreduce()

    letters, labels = splice.read("test")
    right = np.sign(svm.scores(v.array, splice.features(letters, opt.k))) == labels
    what = "server" if server else f"worker {malt.rank()}"
    sent = v.stats().sent_bytes / 1e6
    print(f"{what}: sent {sent:.1f} MB; {right.mean():.4f} of {right.size} test windows are right")
    return v.array


if __name__ == "__main__":
    main()
