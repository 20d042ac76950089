"""Workers that train with parameter servers, with and without Parameter Flow, for ``flow.py``.

PYTHONPATH=examples malt sim --hosts 10 --rate 50Mbit examples/evidence/flowed.py compared \
    '{"held": "dvf:0.3", "consistency": "ssp:0", "steps": 30, "turns": 3}' found.json
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

import malt
from evidence.filtered import BATCH, RATE, Texts
from evidence.job import be

RATIO = 3.6  # of communication to computing
KEEPERS = 2

Run = tuple[float, float, float]


def train(data: Texts, keepers: int, steps: int, computing: float, **options: Any) -> Run:
    """Train; return the seconds of the slowest worker in all and in `sync`, and the loss of a worker's model."""
    workers, size = malt.size() - keepers, int(data.word.max()) + 1
    v = malt.Vector(size, dtype=np.float32, fold="sum-changes", **options)
    mine = np.random.default_rng(malt.rank()).permutation(np.arange(malt.rank(), len(data.labels), malt.size()))
    malt.barrier()
    begun, spent = time.perf_counter(), 0.0
    for step in range(steps if malt.rank() >= keepers else 0):
        first = step % (len(mine) // BATCH) * BATCH
        push = RATE / np.sqrt(step + 1) / workers * data.gradient(v.array, mine[first : first + BATCH])
        v.array -= push.astype(np.float32)
        time.sleep(computing)
        before = time.perf_counter()
        v.sync()
        spent += time.perf_counter() - before
    took = (time.perf_counter() - begun, spent) if malt.rank() >= keepers else (0.0, 0.0)
    loss = malt.broadcast(np.array([data.loss(v.array.astype(np.float64))]), malt.size() - 1)
    slowest = malt.allreduce(np.array(took), "max")
    v.close()
    return float(slowest[0]), float(slowest[1]), float(loss[0])


def flow(held: str) -> dict[str, Any]:
    """Return the options of Parameter Flow."""
    return {"graph": malt.Graph(f"shards:{KEEPERS}/2"), "sparse": "model", "filter": held}


def compared(held: str, consistency: str, steps: int, turns: int) -> dict[str, list[Run]]:
    """Train in turns, with so much computing that plain servers in step communicate `RATIO` times as long."""
    data, plain = Texts("train"), malt.Graph(f"shards:{KEEPERS}")
    computing = train(data, KEEPERS, steps, 0, graph=plain, consistency="ssp:0")[1] / steps / RATIO

    def turn() -> dict[str, Run]:
        return {
            "in step": train(data, KEEPERS, steps, computing, graph=plain, consistency="ssp:0"),
            "plain": train(data, KEEPERS, steps, computing, graph=plain, consistency=consistency),
            "flow": train(data, KEEPERS, steps, computing, consistency=consistency, **flow(held)),
            "average": train(data, 0, steps, computing, graph="all", consistency="bsp"),
        }

    runs = [turn() for _ in range(turns)]
    return {name: [run[name] for run in runs] for name in runs[0]}


def shares(slacks: list[str], steps: int, turns: int, ratio: float) -> dict[str, list[float]]:
    """Return how many times longer plain servers communicate than they compute, which is so many times in step."""
    data, plain = Texts("train"), malt.Graph(f"shards:{KEEPERS}")
    found: dict[str, list[float]] = {consistency: [] for consistency in slacks}
    computing = train(data, KEEPERS, steps, 0, graph=plain, consistency="ssp:0")[1] / steps / ratio
    for consistency in slacks * turns:
        spent = train(data, KEEPERS, steps, computing, graph=plain, consistency=consistency)[1]
        found[consistency].append(spent / steps / computing)
    return found


def spread(held: str, turns: int, seconds: float = 10) -> dict[str, list[float]]:
    """Find how long a sum takes to the worker that gets the fewest, from servers that learn all the time."""
    data, ways = Texts("train"), {"direct": {"graph": malt.Graph(f"shards:{KEEPERS}")}, "flow": flow(held)}
    size = int(data.word.max()) + 1
    times: dict[str, list[float]] = {way: [] for way in ways}
    for way in list(ways) * turns:
        v = malt.Vector(size, dtype=np.float32, fold="sum-changes", consistency="async", **ways[way])
        malt.barrier()
        begun = time.perf_counter()
        for at in itertools.count():
            if malt.rank() >= KEEPERS or time.perf_counter() - begun > seconds:
                break
            first = (KEEPERS * at + malt.rank()) * BATCH % (len(data.labels) - BATCH)
            push = RATE / np.sqrt(at + 1) / KEEPERS * data.gradient(v.array, np.arange(first, first + BATCH))
            v.array -= push.astype(np.float32)
            v.sync()
            time.sleep(0.02)  # the processors are for all ranks
        malt.barrier()
        sums = sum(edge.folded_messages for edge in v.stats().edges) / KEEPERS
        took = time.perf_counter() - begun
        times[way].append(took / float(malt.allreduce(sums if malt.rank() >= KEEPERS else np.inf, "min")))
        v.close()
    return times


if __name__ == "__main__":
    be(compared, shares, spread)
