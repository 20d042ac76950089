"""Mini-batch k-means: centres whose mean is weighted by the counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import StateError
from .._guide import lines
from .._vectors.arrays import Array
from ._state import State, digest


class Centres(State):
    """Per cluster the number of points, and their sum.

    A centre is the mean of the points that it was given, and the count says of
    how many. The vector holds counts and sums, so that the mean over ranks of
    both is the mean of the centres weighted by the counts. The count that a
    centre goes on with is the mean one: its next step is as large as if it had
    learnt alone, which is what averaged models want.
    """

    counters = ("n_steps_", "_n_since_last_reassign")

    def values(self) -> list[tuple[str, Array]]:
        counts, centres = self.estimator._counts, self.estimator.cluster_centers_
        if np.shape(counts) != centres.shape[:1]:
            raise StateError(
                lines(f"{self.name} has counts of shape {np.shape(counts)}", f"it has {len(centres)} centres")
            )
        counts = np.ascontiguousarray(counts, centres.dtype)
        return [("_counts", counts), ("cluster_centers_", np.multiply(centres, counts[:, None], order="C"))]

    def alike(self) -> str:
        init = self.estimator.init
        return "" if isinstance(init, str) or callable(init) else f"init {digest([np.asarray(init, float)])}"

    def take(self) -> None:
        for (label, value), array in zip(self.values(), self.arrays, strict=True):
            self.see_shape(label, value, array)
            np.copyto(array, value)

    def replace(self, values: Sequence[Array]) -> None:
        self._hand(*values)

    def give(self) -> None:
        self._hand(*self.arrays)

    def rest(self) -> list[Array]:
        return [self.estimator.cluster_centers_]  # of a centre without points the sum is 0, wherever it is

    def complete(self, rest: list[Array]) -> None:
        np.copyto(self.estimator.cluster_centers_, rest[0])

    def _hand(self, counts: Array, sums: Array) -> None:
        known = counts > 0  # a centre without points stays where it is
        self.estimator.cluster_centers_[known] = sums[known] / counts[known, None]
        np.copyto(self.estimator._counts, counts)
