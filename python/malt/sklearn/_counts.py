"""Naive Bayes: sums over examples, which add up to what one process would have counted.

A sum cannot be averaged, and where updates are overwritten adding what arrives
would lose some. So each rank publishes the totals of its *own* examples, keeps the
newest totals of each other rank, and gives its estimator the sum of all: however
often an update is overwritten, nothing is lost or counted twice.

Between two exchanges the estimator goes on counting on top of that sum. Its gain
since then is therefore its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import StateError
from .._guide import lines
from .._job import world
from .._vectors.arrays import Array
from .._vectors.folds import Update
from ._state import State, digest, fitted_arrays

Stats = list[Array]


class Totals(State):
    """Statistics of examples that can be merged, and taken apart again."""

    def __init__(self, estimator: Any, names: tuple[str, ...]) -> None:
        super().__init__(estimator, names)
        self.fold = self._remember
        self._others: dict[int, Stats] = {}  # the newest of each sender
        self._base: Stats | None = None  # what all ranks have in common, counted once
        self._seen: Stats | None = None  # what the estimator was last given
        self._before = self.read() if self.fitted() else None

    # What the kinds of naive Bayes differ in.

    def read(self) -> Stats:
        """Return the estimator's statistics, as new arrays of float64."""
        raise NotImplementedError

    def write(self, stats: Stats) -> None:
        """Give the estimator statistics, and what it derives from them."""
        raise NotImplementedError

    def merged(self, a: Stats, b: Stats) -> Stats:
        """Return the statistics of the examples of both."""
        raise NotImplementedError

    def gained(self, now: Stats, before: Stats) -> Stats:
        """Return what has to be merged with ``before`` to give ``now``."""
        raise NotImplementedError

    # What they share.

    def clear(self, arrays: Sequence[Array]) -> None:
        """Make arrays those of no examples."""
        for array in arrays:
            array[...] = 0

    def first(self) -> str:
        return "" if self._before is None else digest(self._before)

    def bind(self, arrays: tuple[Array, ...], common: bool) -> None:
        super().bind(arrays, common)
        if common and self._before is not None and world.size() > 1:
            self._base = self._seen = self._before
            self.clear(arrays)
        self._before = None

    def replace(self, values: Sequence[Array]) -> None:
        nothing = [np.zeros_like(a) for a in values]
        self.clear(nothing)
        self.write(nothing)

    def take(self) -> None:
        now = self.read()
        if [a.shape for a in now] != [a.shape for a in self.arrays]:
            raise StateError(
                lines(
                    f"the {self.name} has arrays of {[a.shape for a in now]} now",
                    f"it had {[a.shape for a in self.arrays]}: it was fitted again, or met a new category",
                    "Make a new malt.sklearn.Vector on all ranks; for categories: min_categories=.",
                )
            )
        if self._seen is None:
            own = now
        else:
            if (now[0] < self._seen[0]).any():
                raise StateError(
                    lines(
                        f"the {self.name} has counted less now than after the last exchange",
                        "it was fitted again",
                        "Call partial_fit instead of fit, or make a new vector, on all ranks.",
                    )
                )
            own = self.merged(list(self.arrays), self.gained(now, self._seen))
            self._seen = now
        for array, value in zip(self.arrays, own, strict=True):
            np.copyto(array, value)

    def give(self) -> None:
        self._hand(self._sum([list(self.arrays), *(self._others[rank] for rank in sorted(self._others))]))

    def settle(self, parts: Sequence[Stats]) -> None:
        """Take each rank's own totals, in rank order, as what all ranks have in common from here on."""
        self._base = self._sum(parts)
        self._others.clear()
        self.clear(self.arrays)
        self._hand(self._base)

    def adopt(self, stats: Stats) -> None:
        """Take the model of another rank as what all have in common from here on."""
        self._base = None
        self.settle([stats])

    def _sum(self, parts: Sequence[Stats]) -> Stats:
        total = self._base
        for part in parts:
            total = part if total is None else self.merged(total, part)
        assert total is not None
        return [a.copy() for a in total]

    def _hand(self, stats: Stats) -> None:
        self.write(stats)
        self._seen = self.read()

    def _remember(self, own: tuple[Array, ...], updates: list[Update]) -> tuple[Array, ...]:
        for u in updates:
            self._others[u.rank] = [a.copy() for a in u.arrays]
        return own


class Counts(Totals):
    """Counts of classes, and of features within them."""

    counters = ()

    def values(self) -> list[tuple[str, Array]]:
        return [
            (label, np.array(value, np.float64, order="C"))
            for label, _, _, value in fitted_arrays(self.estimator, self.names)
        ]

    def read(self) -> Stats:
        return [value for _, value in self.values()]

    def write(self, stats: Stats) -> None:
        for (_, _, _, value), new in zip(fitted_arrays(self.estimator, self.names), stats, strict=True):
            np.copyto(value, new, casting="unsafe")
        # An example and its opposite add nothing to the counts, and make the estimator
        # derive from them all that it predicts with.
        kept = {name: value for name, value in vars(self.estimator).items() if name == "n_categories_"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of data without the names of the features, of log(0)
            self.estimator.partial_fit(
                np.zeros((2, self.estimator.n_features_in_), np.int8),
                np.repeat(self.estimator.classes_[:1], 2),
                sample_weight=np.array([1.0, -1.0]),
            )
        vars(self.estimator).update(kept)

    def merged(self, a: Stats, b: Stats) -> Stats:
        return [x + y for x, y in zip(a, b, strict=True)]

    def gained(self, now: Stats, before: Stats) -> Stats:
        return [x - y for x, y in zip(now, before, strict=True)]


class Moments(Totals):
    """Per class the number of examples, and of each feature the mean and the sum of squared deviations.

    Merged and taken apart as Chan, Golub and LeVeque do it (STAN-CS-79-773), without
    the cancellation that sums of squares would suffer from. The last array is
    ``epsilon_``, which is added to the variances for their own safety: a batch
    brings its own, the largest counts.
    """

    counters = ()

    def values(self) -> list[tuple[str, Array]]:
        return list(zip(("class_count_", "theta_", "var_", "epsilon_"), self.read(), strict=True))

    def read(self) -> Stats:
        e = self.estimator
        count = np.array(e.class_count_, np.float64)
        squares = count[:, None] * (np.asarray(e.var_, np.float64) - float(e.epsilon_))
        squares[count == 0] = 0
        return [count, np.array(e.theta_, np.float64, order="C"), squares, np.array([e.epsilon_], np.float64)]

    def write(self, stats: Stats) -> None:
        e = self.estimator
        count, mean, squares, epsilon = stats
        e.epsilon_ = epsilon[0]
        e.class_count_[:] = count
        e.theta_[:] = mean
        e.var_[:] = squares * inverse(count)[:, None] + e.epsilon_
        if e.priors is None:
            with np.errstate(invalid="ignore"):  # of no examples at all
                e.class_prior_ = e.class_count_ / e.class_count_.sum()

    def merged(self, a: Stats, b: Stats) -> Stats:
        return [a[0] + b[0], *moments(columns(a), columns(b))[1:], np.maximum(a[3], b[3])]

    def gained(self, now: Stats, before: Stats) -> Stats:
        return [now[0] - before[0], *moments_gained(columns(now), columns(before))[1:], now[3]]


def columns(stats: Stats) -> Stats:
    """Return the counts of the classes as a column, with the means and squares of their features."""
    return [stats[0][:, None], stats[1], stats[2]]


def moments(a: Stats, b: Stats) -> Stats:
    """Return the count, mean and sum of squared deviations of the examples of both (STAN-CS-79-773)."""
    (n, mean, squares), (m, other, more) = a, b
    share = m * inverse(n + m)
    apart = other - mean
    return [n + m, mean + apart * share, squares + more + apart**2 * n * share]


def moments_gained(now: Stats, before: Stats) -> Stats:
    """Return what, merged with ``before``, gives ``now``; without examples there is no mean."""
    (total, mean, squares), (n, old, less) = now, before
    m = total - n
    new = mean + (mean - old) * n * inverse(m)
    more = np.maximum(squares - less - (new - old) ** 2 * (n * m) * inverse(total), 0)
    return [m, np.where(m == 0, 0, new), np.where(m == 0, 0, more)]


def inverse(count: Array) -> Array:
    """Return 1 / count; 0 where there is nothing."""
    return np.divide(1.0, count, out=np.zeros(np.shape(count)), where=count != 0)
