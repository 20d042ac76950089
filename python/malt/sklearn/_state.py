"""What all kinds of estimators have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._errors import StateError
from .._guide import lines
from .._vectors.arrays import Array
from .._vectors.folds import Fold


class State:
    """How the model of one estimator gets into a vector's arrays and back.

    Subclasses say in `values` what travels, in `take` how it gets into the
    vector before it is sent, and in `give` what is done with what a gather has
    left there. `give` is called only if something came from other ranks: alone,
    the estimator keeps its own bits.
    """

    fold: Fold | None = None  # in place of the user's, where the meaning leaves no choice
    counters: tuple[str, ...] = ("t_", "n_steps_", "n_iter_")  # which an estimator without data takes over

    def __init__(self, estimator: Any, names: tuple[str, ...]) -> None:
        self.estimator = estimator
        self.names = names  # of what it has once it has learnt
        self.name = type(estimator).__qualname__
        self.arrays: tuple[Array, ...] = ()  # the vector's, once it has been made

    def check(self) -> None:
        """Raise if the estimator's parameters do not go with an exchange."""

    def fitted(self) -> bool:
        """Tell whether there is anything to exchange yet."""
        return all(has(self.estimator, name) for name in self.names)

    def values(self) -> list[tuple[str, Array]]:
        """Return what travels, by name, of a fitted estimator."""
        raise NotImplementedError

    def alike(self) -> str:
        """Return what the first values depend on, besides data; empty if on the data."""
        return ""

    def bind(self, arrays: tuple[Array, ...], common: bool) -> None:
        """Take over the arrays of the new vector, which hold the values.

        ``common`` tells that all ranks had the same values when the states were made.
        """
        self.arrays = arrays

    def see_shape(self, label: str, value: Array, view: Array) -> None:
        """Raise if an array of the estimator no longer fits the vector's."""
        if (value.shape, value.dtype) != (view.shape, view.dtype):
            raise StateError(
                lines(
                    f"{label} of the {self.name} is {_shown(value)} now",
                    f"it was {_shown(view)} at the first exchange",
                    ANEW,
                )
            )

    def take(self) -> None:
        """Bring the estimator's values into the vector."""
        raise NotImplementedError

    def give(self) -> None:
        """Bring the vector's values into the estimator."""
        raise NotImplementedError

    def replace(self, values: Sequence[Array]) -> None:
        """Give an estimator that has learnt nothing itself another one's values."""
        raise NotImplementedError

    def counted(self) -> dict[str, float | int]:
        """Return the counters of a fitted estimator."""
        found = {path: getattr(*_up_to(self.estimator, path)) for path in self.counters if has(self.estimator, path)}
        return {path: int(n) if isinstance(n, int | np.integer) else float(n) for path, n in found.items()}

    def count_on(self, counters: dict[str, float | int]) -> None:
        """Give the estimator the counters of another one."""
        for path, number in counters.items():
            setattr(*_up_to(self.estimator, path), number)

    def rest(self) -> list[Array]:
        """Return what belongs to the model and cannot be told from the vector's arrays."""
        return []

    def complete(self, rest: list[Array]) -> None:
        """Give the estimator the `rest` of another one, whose values the vector has."""

    def first(self) -> str:
        """Return a digest of what was known when the state was made, where it matters."""
        return ""


ANEW = "After fitting again on other data, make a new malt.sklearn.Vector, on all ranks."


def _shown(a: Array) -> str:
    return f"{'x'.join(map(str, a.shape)) or 'a number'} of {a.dtype}"


def _up_to(holder: Any, path: str) -> tuple[Any, str]:
    """Return what the last name of a path hangs on, and that name."""
    *way, last = path.split(".")
    for step in way:
        holder = getattr(holder, step)
    return holder, last


def digest(arrays: Sequence[Array]) -> str:
    """Return a short text that is the same for the same bits."""
    h = hashlib.sha256()
    for a in arrays:
        h.update(f"{a.shape}{a.dtype.str}".encode())
        h.update(np.ascontiguousarray(a).data)
    return h.hexdigest()[:32]


def fitted_arrays(estimator: Any, names: Sequence[str]) -> Iterator[tuple[str, Any, Any, Array]]:
    """Yield the arrays under the names: each a label, where it hangs, its key there, and itself.

    A name may be a path, and what is there an array or a list of arrays.
    """
    for path in names:
        holder, last = _up_to(estimator, path)
        value = getattr(holder, last)
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield f"{path}[{i}]", value, i, _array(estimator, f"{path}[{i}]", item)
        else:
            yield path, holder, last, _array(estimator, path, value)


def has(estimator: Any, path: str) -> bool:
    """Tell whether there is something under a name, which may be a path."""
    for step in path.split("."):
        estimator = getattr(estimator, step, None)
        if estimator is None:
            return False
    return True


def _array(estimator: Any, label: str, value: Any) -> Array:
    if isinstance(value, np.ndarray):
        return value
    kind = type(value).__qualname__
    how = "Call densify() before the exchange." if hasattr(value, "toarray") else ""
    raise StateError(lines(f"{label} of the {type(estimator).__qualname__} is a {kind}", "expected an array", how))
