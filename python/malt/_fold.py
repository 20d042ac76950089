"""Folds of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from . import _lib
from ._arrays import Array
from ._guide import see
from ._options import choose

__all__ = ["Fold", "NativeFold", "Update", "apply", "check"]


class Update:
    """What another rank scattered, as a fold sees it.

    The arrays are read-only views of the sender's memory: no copy has been made.
    They hold these values while the fold runs; a fold that wants to keep some
    copies them.

    Attributes
    ----------
    array : ndarray
        The sender's values, shaped as the vector's array. For a vector of one array.
    arrays : tuple of ndarray
        One per array of the vector.
    rank : int
        Who sent it.
    clock : int
        How many scatters the sender had made, this one included.
    age : int
        This rank's clock minus that one, in scatters; negative where the sender is ahead.
    weight : float
        What the sender wants it to count in a mean.
    """

    __slots__ = ("age", "arrays", "clock", "rank", "weight")

    def __init__(self, update: _lib.Update, arrays: tuple[Array, ...]) -> None:
        self.arrays = arrays
        self.rank, self.clock, self.age, self.weight = update.rank, update.clock, update.age, update.weight

    @property
    def array(self) -> Array:
        """The sender's values, for a vector of one array."""
        if len(self.arrays) != 1:
            raise TypeError(f"malt: this update has {len(self.arrays)} arrays: use .arrays")
        return self.arrays[0]

    def __repr__(self) -> str:
        return f"<malt update of rank {self.rank}: clock {self.clock}, age {self.age}, weight {self.weight:g}>"


BUILT_IN = ("mean", "mean-received", "sum", "min", "max", "replace")


@runtime_checkable
class NativeFold(Protocol):
    """A compiled function of C type ``malt_fold``: a numba cfunc, or anything with its address."""

    @property
    def address(self) -> int:
        """Where the function starts."""


Fold: TypeAlias = "str | NativeFold | Callable[[Any, list[Update]], Any]"


def check(fold: object) -> None:
    """Raise unless ``fold`` is a name, a callable or a native function."""
    if isinstance(fold, str):
        choose("fold", fold, BUILT_IN)
    elif not (isinstance(fold, NativeFold) or callable(fold)):
        raise TypeError(
            f"malt: fold={fold!r}: the name of a fold, a function of (own, updates) or a numba cfunc is "
            f"expected; the names are {', '.join(BUILT_IN)}"
        )


def apply(
    vector: _lib.Object,
    arrays: Sequence[Array],
    single: bool,
    fold: Callable[[Any, list[Update]], Any],
    split: Callable[[Array], tuple[Array, ...]],
    timeout: float | None,
) -> int:
    """Gather with a Python function; the vector keeps its value if that fails.

    ``split`` cuts the bytes of one update into arrays like the vector's.
    """

    def run(updates: list[_lib.Update]) -> None:
        saved = [a.copy() for a in arrays]
        try:
            result = fold(arrays[0] if single else tuple(arrays), [Update(u, split(u.data)) for u in updates])
            _store(result, arrays, single, _called(fold))
        except BaseException:
            for a, old in zip(arrays, saved, strict=True):
                a[...] = old
            raise

    count = vector.gather_with(run, timeout)
    _tell_if_kept(vector, fold)
    return count


def _store(result: object, arrays: Sequence[Array], single: bool, name: str) -> None:
    """Copy what the fold returned into the vector, which may be where it is already."""
    if result is None:
        raise TypeError(
            f"malt: fold {name} returned None: a fold returns the new value; where it has changed own in place, end it "
            f"with `return own`{see('Your own fold')}"
        )
    if single:
        values: Sequence[Any] = [result]
    elif isinstance(result, list | tuple):
        values = result
    else:
        raise TypeError(
            f"malt: fold {name} returned a {type(result).__qualname__}: a list of {len(arrays)} arrays is expected"
        )
    if len(values) != len(arrays):
        raise ValueError(f"malt: fold {name} returned {len(values)} arrays: {len(arrays)} are expected")
    new = [np.asarray(v) for v in values]
    for i, (value, a) in enumerate(zip(new, arrays, strict=True)):
        where = name if single else f"{name}, array {i},"
        if value.shape != a.shape:
            raise ValueError(f"malt: fold {where} returned shape {value.shape}: {a.shape} is expected")
        if value.dtype.kind not in "biuf":
            raise TypeError(f"malt: fold {where} returned dtype {value.dtype}: real numbers are expected")
    if len(new) > 1:  # one array of the result may lie over another one of own
        new = [value if value is a else value.copy() for value, a in zip(new, arrays, strict=True)]
    for value, a in zip(new, arrays, strict=True):
        if value is not a:
            np.copyto(a, value, casting="unsafe")


def _tell_if_kept(vector: _lib.Object, fold: object) -> None:
    """Warn, once per vector, of arrays that outlive the fold they were lent to."""
    if not vector.told and vector.lent():
        vector.told = True
        _lib.warn(
            f"malt: fold {_called(fold)} keeps arrays of its updates after it has returned: they now show what "
            f"arrives later: keep .copy() of them{see('Your own fold')}"
        )


def _called(fold: object) -> str:
    return getattr(fold, "__qualname__", repr(fold))
