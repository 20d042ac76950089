"""Estimators whose fitted arrays are averaged as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import Array
from .._errors import StateError, UnsupportedError
from ._state import State, fitted_arrays, has

__all__ = ["Weights"]


class Weights(State):
    """Weights that are views of the vector's memory.

    `take` makes them so again: some estimators make a new ``intercept_`` in every
    call of ``partial_fit``, and ``fit`` makes everything again. What is still
    in its place is not copied.
    """

    counters = ("t_", "n_iter_", "_optimizer.t")

    def __init__(self, estimator: Any, names: tuple[str, ...]) -> None:
        super().__init__(estimator)
        self._names = names

    def check(self) -> None:
        average = getattr(self.estimator, "average", False)
        if average:
            raise UnsupportedError(
                f"malt: {self.name}(average={average!r}) keeps two models, what it trains and the average of that "
                "over its own steps, and an exchange would leave the second behind the first: leave average out. The "
                "mean over the ranks smooths in its place"
            )

    def fitted(self) -> bool:
        return all(has(self.estimator, name) for name in self._names)

    def values(self) -> list[tuple[str, Array]]:
        return [(label, value) for label, _, _, value in fitted_arrays(self.estimator, self._names)]

    def alike(self) -> str:
        seed = getattr(self.estimator, "random_state", None)
        if "coefs_" not in self._names:  # linear models start with zeros
            return "zeros" if self._names[0] == "coef_" else ""
        return f"seed {seed}" if isinstance(seed, int | np.integer) else ""

    def replace(self, values: Sequence[Array]) -> None:
        for (_, _, _, array), value in zip(fitted_arrays(self.estimator, self._names), values, strict=True):
            np.copyto(array, value)

    def take(self) -> None:
        found = list(fitted_arrays(self.estimator, self._names))
        if len(found) != len(self.arrays):
            raise StateError(f"malt: the {self.name} has {len(found)} arrays, had {len(self.arrays)}: {_ANEW}")
        for (label, holder, key, value), view in zip(found, self.arrays, strict=True):
            if value is view:
                continue
            if (value.shape, value.dtype) != (view.shape, view.dtype):
                raise StateError(
                    f"malt: {label} of the {self.name} is {_shown(value)} now, and was {_shown(view)} at the first "
                    f"exchange: {_ANEW}"
                )
            if _place(value) != _place(view):
                np.copyto(view, value)
            if isinstance(holder, list):
                holder[key] = view
            else:
                setattr(holder, key, view)

    def give(self) -> None:
        """Nothing is left to do: the estimator's arrays are the vector's."""


_ANEW = "it was fitted again on other data. Make a new malt.sklearn.Vector, on all ranks"


def _place(a: Array) -> tuple[int, tuple[int, ...]]:
    return a.__array_interface__["data"][0], a.strides


def _shown(a: Array) -> str:
    return f"{'x'.join(map(str, a.shape)) or 'a number'} of {a.dtype}"
