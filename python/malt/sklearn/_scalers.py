"""Scalers: what they have counted of the features, which merges to what one process would have counted.

As with naive Bayes each rank publishes its *own* counts, and is given those of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import UnsupportedError
from .._guide import lines
from .._vectors.arrays import Array
from ._counts import Stats, Totals, inverse, moments, moments_gained


class Standard(Totals):
    """Of each feature how many values there were, their mean, and the sum of squared deviations.

    Merged and taken apart as `Moments` are (Chan, Golub and LeVeque, STAN-CS-79-773).
    """

    counters = ()

    def check(self) -> None:
        e = self.estimator
        if not e.with_mean and not e.with_std:
            raise UnsupportedError(
                lines(f"{self.name} with neither mean nor std learns nothing", do="Do not make a vector of it.")
            )

    def values(self) -> list[tuple[str, Array]]:
        return list(zip(("n_samples_seen_", "mean_", "var_"), self.read(), strict=True))

    def read(self) -> Stats:
        e = self.estimator
        mean = np.array(e.mean_, np.float64)
        count = np.array(np.broadcast_to(e.n_samples_seen_, mean.shape), np.float64)
        squares = np.zeros_like(mean) if e.var_ is None else np.asarray(e.var_, np.float64) * count
        return [count, mean, squares]

    def write(self, stats: Stats) -> None:
        e = self.estimator
        count, mean, squares = stats
        e.mean_ = mean.copy()
        seen = count.astype(np.asarray(e.n_samples_seen_).dtype)
        e.n_samples_seen_ = seen[0] if (seen == seen[0]).all() else seen  # one number where no value is missing
        if e.with_std:
            e.var_ = squares * inverse(count)
            # Features that hardly vary are left as they are, by the class's own measure.
            noise = count * np.finfo(np.float64).eps * e.var_ + (count * mean * np.finfo(np.float64).eps) ** 2
            e.scale_ = np.sqrt(np.where(e.var_ <= noise, 1.0, e.var_))

    def merged(self, a: Stats, b: Stats) -> Stats:
        return moments(a, b)

    def gained(self, now: Stats, before: Stats) -> Stats:
        return moments_gained(now, before)


class Extrema(Totals):
    """Of each feature the least and the largest value; what other ranks have seen, seen again, changes neither."""

    counters = ()

    def values(self) -> list[tuple[str, Array]]:
        return list(zip(("n_samples_seen_", *self.names), self.read(), strict=True))

    def read(self) -> Stats:
        e = self.estimator
        return [np.array([e.n_samples_seen_], np.float64), *(np.array(getattr(e, n), np.float64) for n in self.names)]

    def write(self, stats: Stats) -> None:
        e = self.estimator
        e.n_samples_seen_ = int(stats[0][0])
        for name, value in zip(self.names, stats[1:], strict=True):
            setattr(e, name, value.astype(getattr(e, name).dtype))
        if "max_abs_" in self.names:
            e.scale_ = np.where(e.max_abs_ == 0, 1, e.max_abs_)
            return
        e.data_range_ = e.data_max_ - e.data_min_
        low, high = e.feature_range
        tiny = e.data_range_ < 10 * np.finfo(e.data_range_.dtype).eps
        e.scale_ = (high - low) / np.where(tiny, 1, e.data_range_)
        e.min_ = low - e.data_min_ * e.scale_

    def clear(self, arrays: Sequence[Array]) -> None:
        arrays[0][...] = 0
        for array in arrays[1:]:
            array[...] = np.nan  # which fmin and fmax pass over

    def merged(self, a: Stats, b: Stats) -> Stats:
        pick = {"data_min_": np.fmin}
        merged = [pick.get(name, np.fmax)(x, y) for name, x, y in zip(self.names, a[1:], b[1:], strict=True)]
        return [a[0] + b[0], *merged]

    def gained(self, now: Stats, before: Stats) -> Stats:
        return [now[0] - before[0], *now[1:]]
