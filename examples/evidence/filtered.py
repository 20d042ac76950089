"""Workers that push to rank 0, which publishes the sum, with filters as in Parameter Flow: ``filters.py`` runs them.

PYTHONPATH=examples malt run -n 5 examples/evidence/filtered.py trained '{"filters": ["", "dvf:0.1"]}' found.json
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import malt
import texts
from evidence.job import be

LAMBDA, RATE, BATCH = 1e-4, 400, 100  # the rate is the best of 200, 400 and 800 without a filter

Weights = NDArray[Any]


class Texts:
    """All texts of a part, as the words in them."""

    def __init__(self, part: str) -> None:
        read, self.labels = texts.read(part)
        _, self.word, self.value = texts.stacked(read)
        self.lengths = np.array([len(words) for words, _ in read])
        self.begins = np.cumsum(self.lengths) - self.lengths
        self.all = self.pick(np.arange(len(self.labels)))

    def pick(self, chosen: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where the words of these texts are, and the place of each one's text in `chosen`."""
        text = np.repeat(np.arange(len(chosen)), self.lengths[chosen])
        ends = np.cumsum(self.lengths[chosen])
        return np.arange(ends[-1]) + (self.begins[chosen] + self.lengths[chosen] - ends)[text], text

    def gradient(self, w: Weights, chosen: NDArray[np.intp]) -> Weights:
        """Return that of the mean log loss of these texts, and of λ/2 ‖w‖²."""
        at, text = self.pick(chosen)
        word, value, labels = self.word[at], self.value[at], self.labels[chosen]
        margin = labels * np.bincount(text, value * w[word], len(chosen))
        push = -labels / (1 + np.exp(margin)) / len(chosen)
        return np.bincount(word, value * push[text], len(w)) + LAMBDA * w

    def loss(self, w: Weights) -> float:
        """Return the objective over all texts."""
        at, text = self.all
        margin = self.labels * np.bincount(text, self.value[at] * w[self.word[at]], len(self.labels))
        return float(np.logaddexp(0, -margin).mean() + LAMBDA / 2 * (w @ w))


def listen(v: malt.Vector[np.float32]) -> None:
    """Fold what has come, of a vector that this rank does not change: a sync would warn of that."""
    v.scatter()
    v.gather()


def train(data: Texts, held: str, consistency: str, passes: int) -> dict[str, Any]:
    """Train with this filter, "" for none.

    Returns the loss at rank 0, the bytes that went up and down, and the processor seconds of a worker's loop.
    """
    workers, size = malt.size() - 1, int(data.word.max()) + 1
    options: dict[str, Any] = {"fold": "replace", "sparse": "model", "filter": held or None, "consistency": consistency}

    def vector(*edges: tuple[int, int]) -> malt.Vector[np.float32]:
        lists = [[to for begin, to in edges if begin == rank] for rank in range(malt.size())]
        return malt.Vector(size, graph=malt.Graph(lists, allow_disconnected=True), dtype=np.float32, **options)

    ups = [vector((worker, 0)) for worker in range(1, workers + 1)]  # what each worker has changed, all in all
    down = vector(*((0, worker) for worker in range(1, workers + 1)))
    mine = np.random.default_rng(malt.rank()).permutation(np.arange(malt.rank() - 1, len(data.labels), workers))
    batches = len(data.labels) // workers // BATCH
    used = time.thread_time()
    for step in range(passes * batches):
        if malt.rank() == 0:
            for up in ups:
                listen(up)
            down.array[:] = sum(up.array for up in ups)
            down.scatter()
        else:
            first = step % batches * BATCH
            push = RATE / np.sqrt(step + 1) / workers * data.gradient(down.array, mine[first : first + BATCH])
            up = ups[malt.rank() - 1]
            up.array -= push.astype(np.float32)
            up.sync()
            listen(down)
    used = malt.allreduce(time.thread_time() - used if malt.rank() else 0.0, "sum") / workers
    loss = malt.broadcast(np.array([data.loss(down.array.astype(np.float64))]), 0)[0]
    sent = [sum(up.stats().sent_bytes for up in ups), down.stats().sent_bytes]
    moved = malt.allreduce(np.array(sent, np.float64), "sum")
    for v in (*ups, down):
        v.close()
    return {"filter": held, "loss": float(loss), "up": moved[0], "down": moved[1], "used": used}


def trained(filters: list[str], consistency: str = "ssp:0", passes: int = 10) -> list[dict[str, Any]]:
    """Train with each of the filters."""
    data = Texts("train")
    return [train(data, held, consistency, passes) for held in filters]


if __name__ == "__main__":
    be(trained)
