"""The vector behind the vector of an estimator, once it has been made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._job import world
from .._vectors import vector
from .._vectors.arrays import Array
from .._vectors.folds import Fold
from ..typing import Op, Start
from ._agree import Agreement
from ._counts import Totals
from ._state import State, digest


class Bound(vector.Vector):
    """A vector whose values an estimator has, or is given at each exchange. Making it is collective."""

    _instead = "the estimator, and make a malt.sklearn.Vector"

    def __init__(
        self,
        state: State,
        agreement: Agreement,
        since: Sequence[Array] | None,
        timeout: float | None,
        options: dict[str, Any],
    ) -> None:
        """Make it of a fitted estimator; ``since``: its model that changes count from, empty where it has zeros."""
        start: Start = "same" if agreement.same and since is not None else "own"
        now = [np.array(a, order="C") for _, a in state.values()]
        first = now if since is None else list(since) or [np.zeros_like(a) for a in now]
        for (label, a), before in zip(state.values(), first, strict=True):
            state.see_shape(label, a, before)
        if options.get("sparse"):  # only one array has rows
            flat = np.concatenate([a.ravel() for a in first], dtype=first[0].dtype, casting="no")
            super().__init__(flat, start=start, **options)
            cuts = np.cumsum([a.size for a in first])[:-1]
            self.parts = tuple(part.reshape(a.shape) for part, a in zip(np.split(self.array, cuts), first, strict=True))
        else:
            super().__init__(first, start=start, **options)
            self.parts = self.arrays
        self._idle = None  # a model may well stay as it is between two exchanges
        self._state = state
        self._untouched = ""  # digest of a model that was another rank's and has not changed since
        if since is not None:
            state.replace([_moved(*arrays, agreement.spare) for arrays in zip(self.parts, first, now, strict=True)])
        state.bind(self.parts, agreement.common)
        if since is None and agreement.same and not isinstance(state, Totals):
            super().broadcast(agreement.root, timeout=timeout)
        self._take()
        if agreement.spare:
            self._untouched = digest(self.parts)

    def fold_of(self, fold: Fold | None) -> Fold | None:
        """Return the fold in force where the user passes this one: what was counted is always added up."""
        return None if isinstance(self._state, Totals) else fold

    def skip(self, weight: float) -> None:
        """Take note of a call of `sync` that is not due."""
        self._calls.weight = weight

    def current(self) -> tuple[Array, ...]:
        """Return the arrays with the values that the estimator has now."""
        self._take()
        return self.parts

    def _take(self) -> None:
        self._state.check()
        self._state.take()

    def _give(self) -> None:
        if world.size() > 1:  # alone, the estimator has the bits already
            self._untouched = ""
            self._state.give()

    def shown(self, estimator: str) -> str:
        """Return its repr as that of an estimator's vector."""
        shapes = ["x".join(map(str, a.shape)) for a in self.parts]
        shape = " + ".join(shapes if len(shapes) <= 8 else [*shapes[:2], "…", f"{shapes[-1]} ({len(shapes)} arrays)"])
        fold = "sum of counts" if isinstance(self._state, Totals) else self.fold
        facts = self._facts() | {"holds": f"{estimator}: {shape}", "fold": fold}
        return self._repr(facts).replace(type(self).__name__, "Vector", 1)

    def combine(self, op: Op | None, timeout: float | None) -> None:
        """Combine all ranks' models; what has learnt nothing does not count in a mean."""
        state = self._state
        if world.size() == 1 or (op is None and self._cumulative):
            self.allreduce(op, timeout=timeout)
        elif isinstance(state, Totals):
            self._take()
            state.settle(world.allgather_in("malt.sklearn.Vector.allreduce", list(self.parts), timeout))
            self._object.allreduce("sum", timeout)  # of zeros: what was unseen counts as seen
        else:
            self._take()
            counts = digest(self.parts) != self._untouched if self._untouched else True
            n = sum(world.allgather_in("malt.sklearn.Vector.allreduce", counts, timeout))
            op = op or "mean"
            if op == "mean" and 0 < n < world.size():
                for array in self.parts:
                    array *= 1 / n if counts else 0
                op = "sum"
            self._object.allreduce(op, timeout)
            self._give()

    def spread(self, root: int, timeout: float | None) -> None:
        """Give every rank root's model."""
        state = self._state
        if world.size() > 1 and isinstance(state, Totals):
            self._take()
            for array, value in zip(self.parts, state.read(), strict=True):
                np.copyto(array, value)
            self._object.broadcast(root, timeout)
            state.adopt([a.copy() for a in self.parts])
        else:
            self.broadcast(root, timeout=timeout)
            own: Any = [state.counted(), state.rest()]
            counters, rest = world.broadcast(own, root, timeout=timeout)
            state.count_on(counters)
            state.complete(rest)


def _moved(start: Array, before: Array, now: Array, spare: bool) -> Array:
    """Return the start with what this rank has changed; ``spare``: nothing."""
    if spare:
        return start
    return now if np.array_equal(start, before) else start + (now - before)
