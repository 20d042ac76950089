"""Ranks that learn at a pace, of which some steps or one rank are slower: ``slack.py`` and ``learnt.py`` run them.

A step takes its time by sleeping for the rest of it, so that there may be more ranks than cores.

PYTHONPATH=examples malt run -n 4 examples/evidence/paced.py calls '{"runs": {"bsp": {}}}' found.json
"""

from __future__ import annotations

import importlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import malt
import mf
import movielens
import splice
import svm
import texts
from evidence.job import be

Model = NDArray[np.float64]
Options = dict[str, Any]
Found = dict[str, Any]
Step = Callable[[int], object]
Call = Callable[[], object]

SOME = "some"  # of all steps are slow


def slowness(kind: str, steps: int, turn: int) -> Iterator[float]:
    """Yield for each step of this rank how many times as long as an even step it takes."""
    draw = np.random.default_rng([turn, malt.rank()])
    for _ in range(steps):
        yield {
            "even": 1.0,
            SOME: 4.0 if draw.random() < 0.05 else 1.0,
            "jitter": draw.uniform(0.5, 1.5),
            "one": 5.0 if malt.rank() == 0 else 1.0,
        }[kind]


class Loop:
    """Steps of this rank with a call after each: how long they take, and how long it is in the calls."""

    def __init__(self, step: Step, call: Call, pace: float, slow: Iterable[float], after: Step = lambda _: None):
        self.inside, self.results = 0.0, Counter[Any]()
        malt.barrier()
        begun = time.perf_counter()
        for at, times in enumerate(slow):
            until = time.perf_counter() + pace * times
            step(at)
            time.sleep(max(0.0, until - time.perf_counter()))
            came = time.perf_counter()
            self.results[call()] += 1
            self.inside += time.perf_counter() - came
            after(at)
        self.span = time.perf_counter() - begun

    def found(self) -> Found:
        """Return the mean time in calls and the time until the last rank is done."""
        return {"inside": malt.allreduce(self.inside), "span": malt.allreduce(self.span, "max")}


def calls(
    runs: dict[str, Options], values: int = 1000, pace: float = 0.01, steps: int = 200, turns: int = 5, kind: str = SOME
) -> dict[str, list[Found]]:
    """Time loops that change all values and call, in turns; Open MPI's allreduce among them, if it runs this job.

    A run that is called "copies" makes the copies that a sync on shards makes.
    """
    found: dict[str, list[Found]] = {}
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        runs = {**runs, "mpi": {}}
    for turn in range(turns):
        for name, options in runs.items():
            v = malt.Vector(values, dtype=np.float32, **options)
            other = {"mpi": allreduce_of, "copies": copies_of}.get(name)
            call: Call = other(v.array) if other else v.sync
            loop = Loop(adder(v.array), call, pace, slowness(kind, steps, turn))
            edges = v.stats().edges
            v.allreduce()
            counts = {what: sum(getattr(edge, what) for edge in edges) for what in ("folded_messages", "overwritten")}
            found.setdefault(name, []).append({**loop.found(), **counts})
            v.close()
    return found


def adder(array: NDArray[np.float32]) -> Step:
    """Return the step that changes all values."""
    return lambda _: np.add(array, 1, array)


def allreduce_of(array: NDArray[np.float32]) -> Call:
    """Return the call that averages it by Open MPI."""
    mpi = importlib.import_module("mpi4py.MPI")

    def call() -> None:
        mpi.COMM_WORLD.Allreduce(mpi.IN_PLACE, array)
        np.divide(array, malt.size(), array)

    return call


def copies_of(array: NDArray[np.float32]) -> Call:
    """Return the call that makes the copies of a sync on shards.

    Changes go into what is to be pushed, most of it to other keepers, and as much comes from their ranks; this rank's
    part is published; the result goes into the array, and is kept to find the next changes.
    """
    part = len(array) // malt.size()
    others = len(array) - part
    to = [np.zeros(n, array.dtype) for n in (len(array), others, others, part, len(array), len(array))]

    def call() -> None:
        for copy in to:
            np.copyto(copy, array[: len(copy)])

    return call


def ages(runs: dict[str, Options], pace: float = 0.01, steps: int = 100, kind: str = SOME) -> dict[str, int]:
    """Return how many syncs what an array lacks of another rank is old at most; ranks add 1 in places of their own."""
    return {name: age(options, pace, slowness(kind, steps, 0), steps) for name, options in runs.items()}


def age(options: Options, pace: float, slow: Iterable[float], steps: int) -> int:
    """Return that of one vector."""
    v = malt.Vector((malt.size(), steps), **{**options, "fold": "sum-changes"})
    lacks = []

    def add(at: int) -> None:
        v.array[malt.rank(), at] += 1

    def sync() -> None:
        v.sync()
        clocks = v.array.sum(axis=1).astype(int)
        if not all((row[:clock] == 1).all() for row, clock in zip(v.array, clocks, strict=True)):
            raise AssertionError(f"a change is in {v.array} twice, or was left out")
        lacks.append(v.clock - int(clocks.min()))

    Loop(add, sync, pace, slow)
    v.allreduce()
    v.close()
    return int(malt.allreduce(max(lacks), "max"))


class Examples:
    """News texts or DNA windows of this rank, for a linear SVM by one-sample SGD."""

    def __init__(self, name: str) -> None:
        if name == "splice":
            letters, labels = malt.shard(*splice.shuffled())
            rows = splice.features(letters)
            self.words: Any = rows.astype(np.intp)
            self.values: Any = np.broadcast_to(np.float64(rows.shape[1] ** -0.5), rows.shape)
            self.decay, self.start = svm.LAMBDA, np.zeros(splice.parameters())
        else:
            read, labels = malt.shard(*texts.read())
            self.words, self.values = zip(*read, strict=True)
            largest = max(int(words.max()) for words in self.words)
            self.decay, self.start = 1e-4, np.zeros(1 + int(malt.allreduce(largest, "max")))
        self.labels = labels

    def sgd(self, w: Model, part: range, seen: int) -> None:
        """Take one step for each of these examples, the first after `seen` others."""
        scale = 1.0
        for t, i in enumerate(part, seen):
            words, values, label = self.words[i], self.values[i], self.labels[i]
            step = 0.5 / (self.decay * (t + 2500))
            own = w[words]
            margin = label * scale * (own @ values)
            scale *= 1 - step * self.decay
            if margin < 1:
                w[words] = own + (step * label / scale) * values
        w *= scale

    def loss(self, w: Model) -> float:
        """Return the objective over the examples of all ranks."""
        scores = [w[words] @ values for words, values in zip(self.words, self.values, strict=True)]
        hinge = np.maximum(0, 1 - self.labels * scores)
        total, count = malt.allreduce(np.array([hinge.sum(), len(hinge)]), "sum")
        return float(total / count + self.decay / 2 * (w @ w))


class Clicks:
    """Rows of this rank for a net that gives each feature 16 numbers, adds them up, and has 16 units and one output."""

    SHAPES = ((15_077, 16), (16, 16), (16,))

    def __init__(self, speed: float) -> None:
        (self.rows, self.labels), (test, clicked) = (
            malt.load(Path(os.environ["MALT_DATA"]) / "movielens-ctr" / f"{part}.svm.gz", n_features=15_077, shard=cut)
            for part, cut in (("train", True), ("test", False))
        )
        self.test, self.clicked, self.speed = test, clicked > 0, speed
        draw = np.random.default_rng(0)
        self.start = np.concatenate([draw.normal(0, 0.3, shape).ravel() for shape in self.SHAPES]).astype(np.float32)

    def forward(self, w: Model, rows: Any) -> tuple[list[Any], Any, Any, Any]:
        """Return the layers, and what comes out of each."""
        ends = np.cumsum([np.prod(shape) for shape in self.SHAPES])[:-1]
        layers = [part.reshape(shape) for part, shape in zip(np.split(w, ends), self.SHAPES, strict=True)]
        added = np.tanh(rows @ layers[0])
        units = np.tanh(added @ layers[1])
        return layers, added, units, units @ layers[2]

    def sgd(self, w: Model, part: range, seen: int) -> None:
        """Take a step for each 256 of these examples."""
        for first in part[::256]:
            some = slice(first, min(first + 256, part.stop))
            rows, labels = self.rows[some], self.labels[some]
            layers, added, units, out = self.forward(w, rows)
            push = labels / (1 + np.exp(labels * out)) * self.speed / len(labels)
            back = np.outer(push, layers[2]) * (1 - units**2)
            down = (back @ layers[1].T) * (1 - added**2)
            layers[2] += units.T @ push
            layers[1] += added.T @ back
            layers[0] += rows.T @ down

    def loss(self, w: Model) -> float:
        """Return how many pairs of test rows are in the wrong order: 1 - AUC."""
        place = np.argsort(np.argsort(self.forward(w, self.test)[3]))
        n = self.clicked.sum()
        return float(1 - (place[self.clicked].sum() - n * (n - 1) / 2) / n / (len(place) - n))


def learn(
    runs: dict[str, Options],
    data: str = "texts",
    every: int = 100,
    passes: float = 2,
    pace: float = 0.0,
    kind: str = "even",
    points: int = 0,
    speed: float = 0.5,
    turns: int = 1,
) -> dict[str, Found]:
    """Train in turns; return the medians of losses, times, updates per sync, and points of the last rank's curve."""
    mine = Clicks(speed) if data == "clicks" else Examples(data)
    steps = int(passes * malt.allreduce(len(mine.labels), "min") / every)

    def train(turn: int, options: Options) -> Found:
        return learnt(mine, options, every, pace, list(slowness(kind, steps, turn)), points)

    return medians(runs, turns, train)


def medians(runs: dict[str, Options], turns: int, train: Callable[[int, Options], Found]) -> dict[str, Found]:
    """Train in turns; return the median of each number, and the curve of each turn."""
    found = [{name: train(turn, options) for name, options in runs.items()} for turn in range(turns)]
    return {
        name: {what: np.median([turn[name][what] for turn in found], axis=0).tolist() for what in found[0][name]}
        | {"curves": [turn[name]["curve"] for turn in found]}
        for name in runs
    }


def learnt(mine: Examples | Clicks, options: Options, every: int, pace: float, slow: list[float], points: int) -> Found:
    """Train once; a point of the curve is the examples of a rank, seconds, and the loss."""
    v = malt.Vector(mine.start, **options)
    kept: list[tuple[int, float, Model]] = []
    begun = time.perf_counter()

    def step(at: int) -> None:
        first = at * every % (len(mine.labels) - every + 1)
        mine.sgd(v.array, range(first, first + every), at * every)

    def keep(at: int) -> None:
        if points and (at + 1) % max(1, len(slow) // points) == 0:
            kept.append(((at + 1) * every, time.perf_counter() - begun, v.array.copy()))

    loop = Loop(step, v.sync, pace, slow, keep)
    overwritten = sum(edge.overwritten for edge in v.stats().edges)
    v.allreduce()
    found = {
        **loop.found(),
        "loss": mine.loss(v.array),
        "curve": [(seen, at, mine.loss(malt.broadcast(w, malt.size() - 1))) for seen, at, w in kept],
        "updates": [int(malt.allreduce(loop.results[n], "sum")) for n in range(malt.size())],
        "overwritten": int(malt.allreduce(overwritten, "sum")),
    }
    v.close()
    return found


class Ratings:
    """Ratings of this rank, and the model that all begin with."""

    def __init__(self, every: int) -> None:
        users, items, stars = movielens.shuffled()
        self.test = movielens.read("test")
        self.mean, self.shift = stars.mean(), users.max() + 1
        rows = self.shift + max(items.max(), self.test[1].max()) + 1
        self.first = np.random.default_rng(0).normal(0, 0.1, (rows, mf.FACTORS + 1))
        self.first[:, -1] = 0
        self.users, self.items, self.stars = malt.shard(users, items, stars)
        self.every = every * mf.BATCH
        self.steps = -(-len(stars) // malt.size() // self.every)  # in a pass

    def step(self, model: Model, at: int) -> None:
        """Learn the ratings until the next sync."""
        done, part = divmod(at, self.steps)
        for i in range(part * self.every, (part + 1) * self.every, mf.BATCH):
            u, f = self.users[i : i + mf.BATCH], self.shift + self.items[i : i + mf.BATCH]
            error = self.stars[i : i + mf.BATCH] - mf.predict(model, u, f, self.mean)
            mf.step(model, u, f, error, 0.01 * 0.95**done)

    def error(self, model: Model) -> float:
        """Return the RMSE of the test ratings."""
        users, items, stars = self.test
        return float(np.sqrt(np.mean((stars - mf.predict(model, users, self.shift + items, self.mean)) ** 2)))


def factor(
    runs: dict[str, Options], passes: int = 20, every: int = 50, pace: float = 0.0, kind: str = "even", turns: int = 1
) -> dict[str, Found]:
    """Factorise in turns; return the median of the error in the end, and of the last rank's after each pass."""
    mine = Ratings(every)

    def train(turn: int, options: Options) -> Found:
        return factored(mine, options, pace, list(slowness(kind, passes * mine.steps, turn)))

    return medians(runs, turns, train)


def factored(mine: Ratings, options: Options, pace: float, slow: list[float]) -> Found:
    """Factorise them once."""
    v = malt.Vector(mine.first, **options)
    kept: list[tuple[float, Model]] = []
    begun = time.perf_counter()

    def step(at: int) -> None:
        mine.step(v.array, at)

    def keep(at: int) -> None:
        if (at + 1) % mine.steps == 0:
            kept.append((time.perf_counter() - begun, v.array.copy()))

    loop = Loop(step, v.sync, pace, slow, keep)
    v.allreduce()
    curve = [(at, mine.error(w)) for at, w in kept]
    found = {
        **loop.found(),
        "rmse": mine.error(v.array),
        "curve": malt.broadcast(np.array(curve), malt.size() - 1).tolist(),
    }
    v.close()
    return found


if __name__ == "__main__":
    be(calls, ages, learn, factor)
