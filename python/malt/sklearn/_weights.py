"""Estimators whose fitted arrays are averaged as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import StateError, UnsupportedError
from .._guide import lines
from .._vectors.arrays import Array
from ._state import ANEW, State, fitted_arrays


class Weights(State):
    """Weights that are views of the vector's memory.

    `take` makes them so again: some estimators make a new ``intercept_`` in every
    call of ``partial_fit``, and ``fit`` makes everything again. Arrays that are
    still views are not copied.
    """

    counters = ("t_", "n_iter_", "_optimizer.t")

    def check(self) -> None:
        average = getattr(self.estimator, "average", False)
        if average:
            raise UnsupportedError(
                lines(
                    f"{self.name}(average={average!r}) keeps two models: one, and its average over the steps",
                    "an exchange would change only the first",
                    "Leave average out. The mean over the ranks smooths instead.",
                )
            )

    def values(self) -> list[tuple[str, Array]]:
        return [(label, value) for label, _, _, value in fitted_arrays(self.estimator, self.names)]

    def alike(self) -> str:
        seed = getattr(self.estimator, "random_state", None)
        if "coefs_" not in self.names:  # linear models start with zeros
            return "zeros" if self.names[0] == "coef_" else ""
        return f"seed {seed}" if isinstance(seed, int | np.integer) else ""

    def replace(self, values: Sequence[Array]) -> None:
        for (_, _, _, array), value in zip(fitted_arrays(self.estimator, self.names), values, strict=True):
            np.copyto(array, value)

    def take(self) -> None:
        found = list(fitted_arrays(self.estimator, self.names))
        if len(found) != len(self.arrays):
            raise StateError(
                lines(
                    f"the {self.name} has {len(found)} arrays",
                    f"it had {len(self.arrays)} at the first exchange",
                    ANEW,
                )
            )
        for (label, holder, key, value), view in zip(found, self.arrays, strict=True):
            if value is view:
                continue
            self.see_shape(label, value, view)
            if _place(value) != _place(view):
                np.copyto(view, value)
            if isinstance(holder, list):
                holder[key] = view
            else:
                setattr(holder, key, view)

    def give(self) -> None:
        """Nothing is left to do: the estimator's arrays are the vector's."""


def _place(a: Array) -> tuple[int, tuple[int, ...]]:
    return a.__array_interface__["data"][0], a.strides
