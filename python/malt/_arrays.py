"""What ``Vector(data)`` may be made of, checked before anything is shared."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _foreign

__all__ = ["Array", "Spec", "assign", "specs"]

Array: TypeAlias = np.ndarray[Any, Any]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class Spec(NamedTuple):
    """One array to be: its shape, its dtype, and its first values (None: zeros)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    init: Array | None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def specs(data: object, dtype: npt.DTypeLike | None) -> tuple[list[Spec], bool]:
    """Read ``data``: a length, a shape, an array, or a list of arrays.

    Returns the arrays to be, and whether they were given as a list.
    """
    wanted = None if dtype is None else _float(np.dtype(dtype), f"dtype={dtype!r}")
    for i, item in enumerate(data if isinstance(data, list | tuple) else [data]):
        if not isinstance(item, np.ndarray) and getattr(item, "shape", ()) != () and _foreign.known(item):
            what = f"data[{i}]" if isinstance(data, list | tuple) else "data"
            hint = "malt.torch.Vector(model) for a PyTorch model" if hasattr(item, "requires_grad") else "numpy arrays"
            raise TypeError(
                f"malt: {what} is a {type(item).__module__}.{type(item).__qualname__}, whose memory malt cannot share: "
                f"use {hint}, or pass a copy, np.array({what})"
            )
    if isinstance(data, np.ndarray):
        return [_like(data, wanted, "data")], False
    if isinstance(data, list | tuple) and any(isinstance(item, np.ndarray) for item in data):
        return [_like(item, wanted, f"data[{i}]") for i, item in enumerate(data)], True
    return [Spec(_shape(data), wanted or np.dtype(np.float64), None)], False


def _shape(data: object) -> tuple[int, ...]:
    if isinstance(data, list) and not data:
        raise ValueError("malt: data=[]: at least one array is expected")
    sizes: list[Any] = [*data] if isinstance(data, list | tuple) else [data]
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in sizes):
        raise TypeError(
            f"malt: data is {_briefly(data)}: a length, a shape, a numpy array or a list of numpy arrays is expected: "
            "try np.asarray(data)"
        )
    shape = tuple(map(operator.index, sizes))
    if any(n < 0 for n in shape):
        raise ValueError(f"malt: data={data!r}: a length or shape has no negative numbers")
    return shape


def _like(item: object, wanted: np.dtype[Any] | None, name: str) -> Spec:
    if not isinstance(item, np.ndarray):
        raise TypeError(
            f"malt: {name} is {_briefly(item)}: a numpy array is expected like its neighbours: try np.asarray"
        )
    if isinstance(item, np.ma.MaskedArray):
        raise TypeError(f"malt: {name} is a masked array, and the mask would not travel: pass .filled(…)")
    if wanted is not None and item.dtype.kind not in "biuf":
        raise TypeError(
            f"malt: {name} has dtype {item.dtype}, which does not convert to {wanted}: real numbers are expected"
        )
    if wanted is None:
        _float(item.dtype, f"{name} has dtype {item.dtype.str if item.dtype.kind == 'f' else item.dtype}")
    if not item.flags.c_contiguous:
        # Not converted silently: the vector's array would be laid out otherwise
        # than the caller's, and a loop would no longer give its serial bits (G1).
        raise ValueError(
            f"malt: {name} with shape {item.shape} and strides {item.strides} is not C-contiguous: pass "
            "np.ascontiguousarray(…)"
        )
    if not item.flags.writeable:
        # It is about to be trained. Whoever holds a read-only array has it from
        # somewhere that it must not be written back to.
        raise ValueError(f"malt: {name} is read-only, and a vector is there to be written: pass a copy, .copy()")
    return Spec(item.shape, wanted or item.dtype, np.ascontiguousarray(item, wanted).reshape(item.shape))


def _float(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    if dtype not in FLOATS or not dtype.isnative:
        raise TypeError(
            f"malt: {what}: float32 or float64 is expected: pass dtype=np.float32 to convert, or .astype(np.float32)"
        )
    return dtype


def _briefly(value: object) -> str:
    text = repr(value)
    return f"{text} ({type(value).__qualname__})" if len(text) <= 40 else f"of type {type(value).__qualname__}"


def assign(target: Array, value: object, name: str) -> None:
    """Copy ``value`` into ``target``, whose shape it must have; a number fills it."""
    try:
        source = np.asarray(value)
    except ValueError as e:
        raise ValueError(f"malt: {name} cannot be assigned this: {e}") from None
    if source.dtype.kind not in "biuf":
        raise TypeError(
            f"malt: {name} is assigned {_briefly(value)} of dtype {source.dtype}: real numbers are expected"
        )
    if source.shape not in ((), target.shape):
        raise ValueError(
            f"malt: {name} has shape {target.shape}, the value assigned has {source.shape}: the same shape is expected"
        )
    np.copyto(target, source, casting="unsafe")
