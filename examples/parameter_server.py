"""A parameter server with the graph ``star``: rank 0 serves, and the other ranks work.

    malt run -n 5 examples/parameter_server.py        four workers

Workers learn from 1,000 examples and send their model to rank 0, which takes the mean
and sends it back. ``notify-ack`` makes each exchange a request and a reply: no update is
overwritten, and a worker waits for rank 0 only. Rank 0 has no examples: it is one more
process, and all bytes go through it. That is why MALT's other graphs have no server
(EuroSys 2015, section 2).
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
    rounds = malt.allreduce(-(-len(rows) // svm.EVERY), "max")  # of a pass; a worker with fewer sends what it has

    v = malt.Vector(splice.parameters(opt.k), graph="star", consistency="notify-ack")
    for done in range(opt.passes):
        for i in range(rounds):
            if server:
                v.gather("mean-received")
                v.scatter()
            else:
                part = slice(i * svm.EVERY, (i + 1) * svm.EVERY)
                svm.sgd(v.array, rows[part], labels[part], done * len(rows) + i * svm.EVERY)
                v.scatter()
                v.gather("replace")
    v.broadcast(root=0)

    letters, labels = splice.read("test")
    right = np.sign(svm.scores(v.array, splice.features(letters, opt.k))) == labels
    what = "server" if server else f"worker {malt.rank()}"
    sent = v.stats().sent_bytes / 1e6
    print(f"{what}: sent {sent:.1f} MB; {right.mean():.4f} of {right.size} test windows are right")
    return v.array


if __name__ == "__main__":
    main()
