"""What is learnt: real data, the step of a serial program, and the figure on the test data that counts.

A model's parameters lie in one flat array, which a contender may move to memory of its own.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from math import exp
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Flat = NDArray[Any]
Data = tuple[Any, ...]
"""Arrays, or lists, with one entry for each example."""


class Model(Protocol):
    """A model with the examples that it learns."""

    flat: Flat

    def move(self, memory: Flat) -> None:
        """Go on with parameters that lie in `memory`, which holds the same values."""

    def step(self, part: slice) -> None:
        """Learn some of the examples."""

    def judge(self, flat: Flat, test: Data) -> float:
        """Return the figure of these parameters on the test data: the less the better."""


@dataclass(frozen=True)
class Task:
    """What all contenders learn."""

    name: str
    figure: str
    target: float
    passes: float
    """Over the data, after which a run ends."""
    batch: int
    """Examples in a step."""
    unit: int
    """Steps between two exchanges are so many, times 1, 4 or 16."""
    load: Callable[[str], Data]
    """Reads the part "train" or "test"."""
    model: Callable[[Data, float], Model]
    """Makes a model that learns these examples, with so many times the usual learning rate."""
    ready: Callable[[Data], Data] = lambda data: data
    """Makes of what was read what a model learns."""
    changes: str = "mean-changes"
    """How MALT folds changes: sums where a step touches few of the parameters."""
    needs: str = ""
    """A folder in the one that `MALT_DATA` names."""
    torch: bool = False
    """Whether the model is a module of PyTorch."""

    def missing(self) -> str:
        """Return why it cannot be learnt here; nothing if it can."""
        found = not self.needs or Path(os.environ.get("MALT_DATA", ""), self.needs).is_dir()
        return "" if found else f"the folder that MALT_DATA names has no {self.needs}"

    def part(self, seed: int, rank: int, size: int, rows: int | None) -> Data:
        """Return a rank's examples, in an order that each seed has of its own; all ranks have as many."""
        data = _read(self.name, "train")
        order = np.random.default_rng(seed).permutation(len(data[-1]))[:rows]
        own = order[: len(order) // size * size][rank::size]
        return self.ready(tuple(each[own] for each in data))

    def test(self) -> Data:
        """Return the test data."""
        return _test(self.name)


@cache
def _read(name: str, part: str) -> Data:
    return TASKS[name].load(part)


@cache
def _test(name: str) -> Data:
    return TASKS[name].ready(_read(name, "test"))


class Svm:
    """A linear support vector machine, by scikit-learn's `partial_fit`."""

    def __init__(self, data: Data, rate: float, eta0: float, alpha: float) -> None:
        from sklearn.linear_model import SGDClassifier

        self._rows, self._labels = data
        how = {"learning_rate": "invscaling", "power_t": 0.25, "eta0": rate * eta0, "alpha": alpha}
        self._fit = SGDClassifier(loss="hinge", fit_intercept=False, shuffle=False, **how)
        self._fit.partial_fit(self._rows[:1], self._labels[:1], classes=[-1.0, 1.0])  # makes its arrays
        self._fit.coef_[:] = 0
        self.flat = self._fit.coef_[0]

    def move(self, memory: Flat) -> None:
        self.flat = memory
        self._fit.coef_ = memory.reshape(1, -1)

    def step(self, part: slice) -> None:
        self._fit.partial_fit(self._rows[part], self._labels[part])
        assert np.shares_memory(self._fit.coef_, self.flat), "scikit-learn has moved its array"

    def judge(self, flat: Flat, test: Data) -> float:
        return float((np.sign(test[0] @ flat) != test[1]).mean())


class Factors:
    """Matrix factors of ratings, by the numpy of `examples/serial/mf.py`."""

    USERS, ITEMS, MEAN = 1_975, 13_004, 3.5

    def __init__(self, data: Data, rate: float) -> None:
        from serial import mf

        self._mf, self._data, self._rate = mf, data, rate
        model = np.random.default_rng(0).normal(0, 0.1, (self.USERS + self.ITEMS, mf.FACTORS + 1))
        model[:, -1] = 0
        self.move(model.reshape(-1))

    def move(self, memory: Flat) -> None:
        self.flat, self._model = memory, memory.reshape(-1, self._mf.FACTORS + 1)

    def step(self, part: slice) -> None:
        users, items, stars = (each[part] for each in self._data)
        for i in range(0, len(stars), self._mf.BATCH):
            u, v = users[i : i + self._mf.BATCH], self.USERS + items[i : i + self._mf.BATCH]
            error = stars[i : i + self._mf.BATCH] - self._mf.predict(self._model, u, v, self.MEAN)
            self._mf.step(self._model, u, v, error, 0.01 * self._rate)

    def judge(self, flat: Flat, test: Data) -> float:
        users, items, stars = test
        guess = self._mf.predict(flat.reshape(self._model.shape), users, self.USERS + items, self.MEAN)
        return float(np.sqrt(np.mean((stars - guess) ** 2)))


class Digits:
    """A network of one hidden layer, as in `examples/serial/mlp_torch.py`."""

    def __init__(self, data: Data, rate: float) -> None:
        import torch
        from torch import nn

        torch.manual_seed(1)
        self._torch, self._rate = torch, 0.1 * rate
        self._images, self._labels = map(torch.from_numpy, data)
        self.net: Any = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        self.move(np.concatenate([p.detach().numpy().ravel() for p in self.net.parameters()]))

    def move(self, memory: Flat) -> None:
        self.flat = memory
        whole, at = self._torch.from_numpy(memory), 0
        for p in self.net.parameters():
            p.data = whole[at : at + p.numel()].view_as(p)
            at += p.numel()
        self._sgd = self._torch.optim.SGD(self.net.parameters(), lr=self._rate)

    def step(self, part: slice) -> None:
        self._sgd.zero_grad()
        images, labels = self._images[part] / 255, self._labels[part]
        self._torch.nn.functional.cross_entropy(self.net(images), labels).backward()
        self._sgd.step()

    def judge(self, flat: Flat, test: Data) -> float:
        images, labels = map(self._torch.from_numpy, test)
        self.flat[:] = flat
        with self._torch.no_grad():
            return float((self.net(images / 255).argmax(1) != labels).double().mean())


class Online:
    """Logistic regression in plain Python, one example after the other."""

    def __init__(self, data: Data, rate: float) -> None:
        self._rows, _, self._labels = data
        self._rate = 0.02 * rate
        self.move(np.zeros(15_077))

    def move(self, memory: Flat) -> None:
        self.flat, self._weights = memory, memory.data

    def step(self, part: slice) -> None:
        weights, rate = self._weights, self._rate
        for row, label in zip(self._rows[part], self._labels[part], strict=True):
            margin = sum([weights[i] for i in row])
            push = rate * label / (1 + exp(label * margin))
            for i in row:
                weights[i] += push

    def judge(self, flat: Flat, test: Data) -> float:
        return float(np.logaddexp(0, -np.array(test[2]) * (test[1] @ flat)).mean())


def _splice(part: str) -> Data:
    import splice

    return splice.read(part)


def _kmers(data: Data) -> Data:
    """Return windows as rows of scikit-learn: their k-mers of 1 to 3 letters."""
    from scipy.sparse import csr_array

    import splice

    rows = splice.features(data[0])
    count, width = rows.shape
    ends = np.arange(0, rows.size + 1, width, dtype=np.int32)
    return csr_array((np.full(rows.size, width**-0.5), rows.reshape(-1), ends), (count, splice.parameters())), data[1]


def _svm_rows(folder: str, features: int, part: str) -> Data:
    from sklearn.datasets import load_svmlight_file

    with gzip.open(Path(os.environ["MALT_DATA"], folder, f"{part}.svm.gz")) as file:
        rows, labels = load_svmlight_file(file, n_features=features, zero_based=False)
    return rows, labels


def _lists(data: Data) -> Data:
    """Return what plain Python is fastest with: a list of the features of each example, all of which are 1."""
    rows, labels = data
    ends = pairwise(rows.indptr.tolist())
    features = rows.indices.tolist()
    return [features[i:j] for i, j in ends], rows, labels.tolist()


def _ratings(part: str) -> Data:
    import movielens

    return movielens.read(part)


def _digits(part: str) -> Data:
    import mnist

    return mnist.read("train" if part == "train" else "t10k")


TASKS = {
    task.name: task
    for task in (
        Task(
            name="splice, scikit-learn",
            figure="test error",
            target=0.053,
            passes=2,
            batch=1000,
            unit=1,
            load=_splice,
            ready=_kmers,
            model=partial(Svm, eta0=2.0, alpha=1e-5),
        ),
        Task(
            name="rcv1, scikit-learn",
            figure="test error",
            target=0.061,
            passes=6,
            batch=250,
            unit=1,
            load=partial(_svm_rows, "rcv1-ccat", 47236),
            model=partial(Svm, eta0=4.0, alpha=1e-5),
            needs="rcv1-ccat",
        ),
        Task(
            name="ratings, numpy",
            figure="RMSE",
            target=0.87,
            passes=8,
            batch=320,
            unit=2,
            load=_ratings,
            model=Factors,
            changes="sum-changes",
            needs="movielens-small3",
        ),
        Task(
            name="digits, torch",
            figure="test error",
            target=0.035,
            passes=3,
            batch=32,
            unit=4,
            load=_digits,
            model=Digits,
            needs="mnist",
            torch=True,
        ),
        Task(
            name="clicks, plain Python",
            figure="log loss",
            target=0.575,
            passes=3,
            batch=100,
            unit=5,
            load=partial(_svm_rows, "movielens-ctr", 15_077),
            ready=_lists,
            model=Online,
            changes="sum-changes",
            needs="movielens-ctr",
        ),
    )
}
"""By name."""
