"""PageRank of a graph of which each rank has some links, by sparse allreduce: a rank gets the scores that it needs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import malt  # malt run -n 4 examples/pagerank.py

DAMPING = 0.85

Links = NDArray[np.int64]
Scores = NDArray[np.float64]


def read(folder: str | None) -> Links:
    """Return links, (from, to): of cnr-2000 in the folder MALT_DATA, or else of 2,000 pages that are made up."""
    path = Path(folder or ".") / "cnr-2000" / "edges.txt.gz"
    if path.exists():
        return np.loadtxt(path, np.int64)
    draw = np.random.default_rng(0)
    return (2000 * draw.random((20000, 2)) ** [1, 3]).astype(np.int64)  # few pages have most links


def pagerank(links: Links, pages: int, iterations: int, graph: Literal["all", "butterfly"] = "all") -> Scores:
    """Return the scores of all pages, from this rank's links."""
    sources, source = np.unique(links[:, 0], return_inverse=True)
    targets, target = np.unique(links[:, 1], return_inverse=True)

    own = np.stack([np.bincount(source), np.ones(len(sources))], axis=1)  # links here, and that this rank has any
    with malt.Vector(own, ids=sources, fold="sum", graph=graph) as v:
        v.sync()
        links_of, ranks_of = v.array.T.copy()

    scores = np.full(len(sources), 1 / pages)
    with malt.Vector(len(targets), ids=targets, wants=sources, fold="sum", graph=graph) as v:
        for i in range(iterations):
            if i == iterations - 1:
                v.configure(wants=np.arange(pages))  # now all of them
            v.array = np.bincount(target, (scores / links_of)[source], len(targets))
            v.sync()
            linked = malt.allreduce((scores / ranks_of).sum(), "sum")  # of pages with links; the others' goes to all
            scores = (1 - DAMPING) / pages + DAMPING * (v.wanted + (1 - linked) / pages)
    return scores


def main(argv: Sequence[str] | None = None) -> Scores:
    """Rank the pages, and show the first."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--iterations", type=int, default=10)
    ask.add_argument("--graph", default="all", choices=["all", "butterfly"])
    opt = ask.parse_args(argv)

    links = read(os.environ.get("MALT_DATA"))
    mine = np.random.default_rng(1).permutation(len(links))[malt.rank() :: malt.size()]
    scores = pagerank(links[mine], int(links.max()) + 1, opt.iterations, opt.graph)
    if malt.rank() == 0:
        best = np.argsort(-scores, kind="stable")[:5]
        print(f"{len(links)} links of {len(scores)} pages; the first:")
        for page in best:
            print(f"{page:8} {scores[page]:.7f}")
    return scores


if __name__ == "__main__":
    main()
