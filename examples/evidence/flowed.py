"""Workers that train with parameter servers, with and without Parameter Flow, for ``flow.py``.

PYTHONPATH=examples malt sim --hosts 10 --rate 50Mbit examples/evidence/flowed.py compared \
    '{"held": "dvf:0.3", "consistency": "ssp:0", "steps": 30, "turns": 3}' found.json
"""

from __future__ import annotations

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


def compared(held: str, consistency: str, steps: int, turns: int) -> dict[str, list[Run]]:
    """Train in turns, with so much computing that plain servers in step communicate `RATIO` times as long."""
    data, plain = Texts("train"), malt.Graph(f"shards:{KEEPERS}")
    computing = train(data, KEEPERS, steps, 0, graph=plain, consistency="ssp:0")[1] / steps / RATIO
    flow: dict[str, Any] = {"graph": malt.Graph(f"shards:{KEEPERS}/2"), "sparse": "model", "filter": held}

    def turn() -> dict[str, Run]:
        return {
            "in step": train(data, KEEPERS, steps, computing, graph=plain, consistency="ssp:0"),
            "plain": train(data, KEEPERS, steps, computing, graph=plain, consistency=consistency),
            "flow": train(data, KEEPERS, steps, computing, consistency=consistency, **flow),
            "average": train(data, 0, steps, computing, graph="all", consistency="bsp"),
        }

    runs = [turn() for _ in range(turns)]
    return {name: [run[name] for run in runs] for name in runs[0]}


if __name__ == "__main__":
    be(compared)
