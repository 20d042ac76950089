"""Ranks that time sparse allreduce, and trees, beside what takes their place: ``sparse.py`` and ``flow.py`` run them.

PYTHONPATH=examples malt sim --hosts 8 --rate 1Gbit examples/evidence/ranks.py sums '{"turns": 5}' found.json
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import malt
import pagerank
from evidence.job import be

ITERATIONS = 10

Times = dict[str, list[float]]
Found = dict[str, Any]


def timed(call: Callable[[], object]) -> float:
    """Return how long the slowest rank takes for a call that all begin together."""
    malt.barrier()
    begun = time.perf_counter()
    call()
    return float(malt.allreduce(time.perf_counter() - begun, "max"))


def in_turns(calls: dict[str, Callable[[], object]], turns: int) -> Times:
    """Time each call so many times, one after the other; a first turn does not count."""
    rounds = [{name: timed(call) for name, call in calls.items()} for _ in range(turns + 1)]
    return {name: [times[name] for times in rounds[1:]] for name in calls}


def sums(turns: int, size: int = 1_000_000, density: float = 0.03) -> Found:
    """Sum arrays of `size` float32, of which each rank has a part that is drawn at random, and wants the same part."""
    n = round(density * size)
    ids = np.sort(np.random.default_rng(malt.rank()).choice(size, n, replace=False))
    values = np.ones(n, np.float32)
    rows = malt.Vector(values, ids=ids, wants=ids, fold="sum")
    whole = malt.Vector(size, dtype=np.float32, fold="sum")
    gathered = np.zeros(size, np.float32)

    def dense(combine: Callable[[], object]) -> None:
        whole.array[:] = 0
        whole.array[ids] = values
        combine()

    def gather() -> None:
        gathered[:] = 0
        for other in malt.allgather(np.concatenate([ids.astype(np.uint32), values.view(np.uint32)])):
            gathered[other[:n]] += other[n:].view(np.float32)

    times = in_turns(
        {
            "rows": rows.sync,
            "sync": lambda: dense(whole.sync),
            "allreduce": lambda: dense(lambda: whole.allreduce("sum")),
            "allgather": gather,
        },
        turns,
    )
    if not (np.array_equal(rows.wanted, whole.array[ids]) and np.array_equal(rows.wanted, gathered[ids])):
        raise AssertionError("the sums differ")
    counted = malt.allreduce(np.array([rows.stats().sent_bytes / (turns + 1)]))[0]  # the mean of all ranks
    others = 1 - 1 / malt.size()
    return {"times": times, "bytes": [counted, 8 * size * others, 8 * n * (malt.size() - 1)]}


def ranked(links: pagerank.Links, pages: int, how: str) -> tuple[NDArray[np.float64], NDArray[np.int64], float, int]:
    """Return the scores of this rank's sources, which pages these are, the seconds in communication and the bytes."""
    sources, source = np.unique(links[:, 0], return_inverse=True)
    targets, target = np.unique(links[:, 1], return_inverse=True)
    links_of, ranks_of = np.zeros((2, pages))
    links_of[sources], ranks_of[sources] = np.bincount(source), 1
    links_of, ranks_of = (malt.allreduce(both, "sum")[sources] for both in (links_of, ranks_of))
    sparse = how == "rows"
    v = malt.Vector(len(targets), ids=targets, wants=sources, fold="sum") if sparse else malt.Vector(pages, fold="sum")
    exchange: Callable[[], object] = partial(v.allreduce, "sum") if how == "allreduce" else v.sync
    scores = np.full(len(sources), 1 / pages)
    spent = 0.0
    for _ in range(ITERATIONS):
        given = np.bincount(target, (scores / links_of)[source], len(targets))
        if sparse:
            v.array[:] = given
        else:
            v.array[:] = 0
            v.array[targets] = given
        spent += timed(exchange)
        linked = malt.allreduce((scores / ranks_of).sum(), "sum")
        came = v.wanted if sparse else v.array[sources]
        scores = (1 - pagerank.DAMPING) / pages + pagerank.DAMPING * (came + (1 - linked) / pages)
    return scores, sources, spent, v.stats().sent_bytes


def pages(turns: int) -> Found:
    """PageRank by rows and by whole arrays, beside one process."""
    links = pagerank.read(os.environ.get("MALT_DATA"))
    count = int(links.max()) + 1
    mine = links[np.random.default_rng(1).permutation(len(links))[malt.rank() :: malt.size()]]
    times: Times = {"all": [], "rows": [], "sync": [], "allreduce": []}
    for turn in range(turns + 1):
        begun = time.perf_counter()
        scores, sources, *rows = ranked(mine, count, "rows")
        took = {"all": time.perf_counter() - begun, "rows": rows[0]}
        for how in ("sync", "allreduce"):
            took[how] = ranked(mine, count, how)[2]
        if turn:
            for name, seconds in took.items():
                times[name].append(seconds)
    sent = malt.allreduce(float(rows[1])) / ITERATIONS
    alone = serial(links, count) if malt.rank() == 0 else np.zeros(count)
    alone = malt.broadcast(alone, 0)
    apart = malt.allreduce(float(np.abs(scores - alone[sources]).max() / alone.max()), "max")
    needs = malt.allreduce(len(sources) / count)
    return {"times": times, "apart": apart, "needs": needs, "bytes": [sent, 16 * count * (1 - 1 / malt.size())]}


def serial(links: pagerank.Links, count: int) -> NDArray[np.float64]:
    """Return the scores of all pages by one process."""
    out = np.bincount(links[:, 0], minlength=count)
    scores = np.full(count, 1 / count)
    for _ in range(ITERATIONS):
        share = np.divide(scores, out, out=np.zeros(count), where=out > 0)
        came = np.bincount(links[:, 1], share[links[:, 0]], count)
        scores = (1 - pagerank.DAMPING) / count + pagerank.DAMPING * (came + scores[out == 0].sum() / count)
    return scores


def states(turns: int, size: int, keepers: int = 2, fanout: int = 2, seconds: float = 10) -> Found:
    """Find how long a sum takes to the ranks that keep no part, from the first ones, which change it all the time."""

    def spent(graph: malt.Graph) -> float:
        v = malt.Vector(size, dtype=np.float32, fold="sum-changes", graph=graph, consistency="async")
        malt.barrier()
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            if malt.rank() < keepers:
                v.array += 1
                v.sync()
            time.sleep(0.02)  # the processors are for all ranks
        malt.barrier()
        took = time.perf_counter() - begun
        sums = sum(other.folded_bytes for other in v.stats().edges) / v.array.nbytes
        v.close()
        return took / float(malt.allreduce(sums if malt.rank() >= keepers else np.inf, "min"))

    calls = {"direct": malt.Graph(f"shards:{keepers}"), "trees": malt.Graph(f"shards:{keepers}/{fanout}")}
    rounds = [{name: spent(graph) for name, graph in calls.items()} for _ in range(turns)]
    return {"times": {name: [times[name] for times in rounds] for name in calls}}


if __name__ == "__main__":
    be(sums, pages, states)
