"""Folds of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, get_args

import numpy as np

from .. import _lib
from .._guide import lines
from .._options import choose
from ..typing import FoldName
from .arrays import Array


class Update:
    """An update from another rank, as a fold of your own gets it.

    The arrays are read-only views of the sender's memory, without a copy. They are valid
    while the fold runs: copy the values that you want to keep.

    Attributes
    ----------
    array : ndarray
        For a vector of one array: the sender's values, in the shape of the vector's array.
    arrays : tuple of ndarray
        The sender's values, one array for each array of the vector.
    rank : int
        The sender.
    clock : int
        The sender's number of scatters, including this one.
    age : int
        This rank's clock minus the sender's, in scatters; negative if the sender is ahead.
    weight : float
        The weight of the update in a mean: ``weight=`` of the scatter.
    rows : ndarray of int64, shape (n,), or None
        For a sparse vector: the rows of the update, as ascending indices along the first
        axis. Otherwise None.
    values : ndarray, shape (n, …), or None
        For a sparse vector: the values of these rows, ``array[rows]``, as a copy.

    Notes
    -----
    For a sparse vector, `array` is a whole array, made at the first access. Rows that the
    update does not contain have the vector's own values with ``sparse="model"``, and zeros
    with ``sparse="gradient"``. So a fold also works without ``rows`` and ``values``, but it
    is faster with them.
    """

    __slots__ = ("_arrays", "age", "clock", "rank", "rows", "values", "weight")

    def __init__(
        self,
        update: _lib.Update,
        arrays: tuple[Array, ...] | Callable[[], tuple[Array, ...]],
        values: Array | None = None,
    ) -> None:
        self._arrays = arrays
        self.rows = None if update.rows is None else update.rows.astype(np.int64)
        self.values = values
        self.rank, self.clock, self.age, self.weight = update.rank, update.clock, update.age, update.weight

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The sender's values, one array per array of the vector."""
        if not isinstance(self._arrays, tuple):
            self._arrays = self._arrays()
        return self._arrays

    @property
    def array(self) -> Array:
        """The sender's values, for a vector of one array."""
        if len(self.arrays) != 1:
            raise TypeError(lines(f"this update has {len(self.arrays)} arrays", do="Use .arrays."))
        return self.arrays[0]

    def __repr__(self) -> str:
        return f"<malt update of rank {self.rank}: clock {self.clock}, age {self.age}, weight {self.weight:g}>"


BUILT_IN: tuple[FoldName, ...] = get_args(FoldName)


class NativeFold(Protocol):
    """A compiled function of C type ``malt_fold``: a numba cfunc, or anything with its address."""

    @property
    def address(self) -> int:
        """Where the function starts."""


def compiled(fold: object) -> int | None:
    """Return the address of a compiled fold; an instance check of the protocol would take tens of microseconds."""
    return getattr(fold, "address", None)


Fold: TypeAlias = "FoldName | NativeFold | Callable[[Any, list[Update]], Any]"


def check(fold: object, number: str | None = None) -> None:
    """Raise unless ``fold`` is a name, a callable or a native function.

    ``number`` is the option that a caller has in mind who passes a number first.
    """
    if isinstance(fold, str):
        choose("fold", fold, BUILT_IN)
    elif not (compiled(fold) is not None or callable(fold)):
        hint = (
            f"Did you mean {number}={fold!r}?"
            if number and type(fold) is not bool and isinstance(fold, int | float | np.number)
            else ""
        )
        raise TypeError(
            lines(
                f"fold={fold!r}",
                "it is a function of (own, updates), a numba cfunc, or one of " + ", ".join(BUILT_IN),
                hint,
            )
        )


def apply(
    vector: _lib.Object,
    arrays: Sequence[Array],
    single: bool,
    fold: Callable[[Any, list[Update]], Any],
    split: Callable[[Array], tuple[Array, ...]],
    timeout: float | None,
    sparse: str | None = None,
) -> int:
    """Gather with a Python function; the vector keeps its value if that fails.

    ``split`` cuts the bytes of one update into arrays like the vector's.
    """

    def run(updates: list[_lib.Update]) -> None:
        if not vector.saved:  # kept from one fold to the next: fresh memory costs more than the copy
            vector.saved = [np.empty_like(a) for a in arrays]
        saved = vector.saved
        for old, a in zip(saved, arrays, strict=True):
            np.copyto(old, a)
        try:
            shown = [Update(u, u.parts) if u.rows is None else _of_rows(u, u.rows, saved[0], sparse) for u in updates]
            try:
                result = fold(arrays[0] if single else tuple(arrays), shown)
            except TypeError as e:
                if e.__traceback__ is None or e.__traceback__.tb_next is not None:
                    raise  # from inside the function
                what = f"fold {_called(fold)} cannot be called with (own, updates)"
                raise TypeError(lines(what, str(e), "Give it these two parameters.")) from None
            if not (single and result is arrays[0]):
                _store(result, arrays, single, _called(fold))
        except BaseException:
            for a, old in zip(arrays, saved, strict=True):
                a[...] = old
            raise

    count = vector.gather_with(run, timeout, split, depth=6)  # over this, Vector._gather, and what was called
    vector.folds += 1
    if not vector.told and vector.folds & (vector.folds - 1) == 0:  # looking makes all views anew
        _tell_if_kept(vector, fold)
    return count


def _of_rows(update: _lib.Update, rows: Array, own: Array, sparse: str | None) -> Update:
    """Return an update of rows, which makes a whole array only when that is asked for."""
    values = update.data.view(own.dtype).reshape(len(rows), *own.shape[1:])
    for shown in (rows, values):
        shown.flags.writeable = False
    return Update(update, lambda: (_whole(own, rows, values, sparse),), values)


def _whole(own: Array, rows: Array | None, values: Array, sparse: str | None) -> Array:
    """Return a whole array with the rows of an update of a sparse vector in it, read-only."""
    whole = own.copy() if sparse == "model" else np.zeros_like(own)
    whole[rows] = values
    whole.flags.writeable = False
    return whole


def _store(result: object, arrays: Sequence[Array], single: bool, name: str) -> None:
    """Copy what the fold returned into the vector, which may be where it is already."""
    if result is None:
        raise TypeError(
            lines(
                f"fold {name} returned None",
                do="Return the new value. If the fold has changed own in place: return own.",
                topic="fold-returns",
            )
        )
    if single:
        values: Sequence[Any] = [result]
    elif isinstance(result, list | tuple):
        values = result
    else:
        raise TypeError(
            lines(f"fold {name} returned a {type(result).__qualname__}", f"expected a list of {len(arrays)} arrays")
        )
    if len(values) != len(arrays):
        raise ValueError(lines(f"fold {name} returned {len(values)} arrays", f"expected {len(arrays)}"))
    new = [np.asarray(v) for v in values]
    for i, (value, a) in enumerate(zip(new, arrays, strict=True)):
        where = name if single else f"{name}, array {i},"
        if value.shape != a.shape:
            raise ValueError(lines(f"fold {where} returned shape {value.shape}", f"expected {a.shape}"))
        if value.dtype.kind not in "biuf":
            raise TypeError(lines(f"fold {where} returned dtype {value.dtype}", "expected real numbers"))
    if len(new) > 1:  # one array of the result may lie over another one of own
        new = [value if value is a else value.copy() for value, a in zip(new, arrays, strict=True)]
    for value, a in zip(new, arrays, strict=True):
        if value is not a:
            np.copyto(a, value, casting="unsafe")


def _tell_if_kept(vector: _lib.Object, fold: object) -> None:
    """Warn, once per vector, of arrays that outlive the fold they were lent to."""
    if vector.lent():
        vector.told = True
        _lib.warn(
            lines(
                f"fold {_called(fold)} keeps arrays of its updates after it has returned",
                "they now show later updates",
                "Keep copies of them: .copy().",
                topic="fold",
            )
        )


def _called(fold: object) -> str:
    return getattr(fold, "__qualname__", None) or repr(fold)
