"""What ``Vector(data)`` may be made of, checked before anything is shared."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .._guide import lines
from .._job import foreign

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
        if not isinstance(item, np.ndarray | np.generic) and foreign.known(item) and not _is_length(item):
            what = f"data[{i}]" if isinstance(data, list | tuple) else "data"
            hint, copy = "numpy arrays", f"np.array({what})"
            if hasattr(item, "requires_grad"):
                small = ".float()" if item.itemsize < 4 else ""  # numpy has no bfloat16
                hint, copy = "malt.torch.Vector(model) for a PyTorch model", f"{what}.detach().cpu(){small}.numpy()"
            raise TypeError(
                lines(
                    f"{what} is a {type(item).__module__}.{type(item).__qualname__}, whose memory malt cannot share",
                    do=f"Use {hint}, or pass a copy, {copy}.",
                )
            )
    if isinstance(data, np.ndarray):
        return [_like(data, wanted, "data")], False
    if isinstance(data, list | tuple) and any(isinstance(item, np.ndarray) for item in data):
        return [_like(item, wanted, f"data[{i}]") for i, item in enumerate(data)], True
    return [Spec(_shape(data), wanted or np.dtype(np.float64), None)], False


def _is_length(item: Any) -> bool:
    """Tell whether an array of no dimensions stands for a whole number."""
    try:
        operator.index(item)
    except TypeError:
        return False
    return bool(item.shape == ())


def _shape(data: object) -> tuple[int, ...]:
    if isinstance(data, list) and not data:
        raise ValueError(lines("data=[]", "expected at least one array"))
    if isinstance(data, dict):
        raise TypeError(
            lines(
                "data is a dict, which has no order that all ranks share",
                do="Write malt.Vector(list(data.values())), keys in the same order on all ranks.",
            )
        )
    sizes: list[Any] = [*data] if isinstance(data, list | tuple) else [data]
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in sizes):
        raise TypeError(
            lines(
                f"data is {_briefly(data)}",
                "expected a length, a shape, a numpy array or a list of numpy arrays",
                _instead(data),
            )
        )
    shape = tuple(map(operator.index, sizes))
    if any(n < 0 for n in shape):
        raise ValueError(lines(f"data={data!r}", "a length or shape has no negative numbers"))
    if any(n >> 63 for n in shape):  # what is less the library refuses, with its own limit
        raise ValueError(lines(f"data={data!r}", "that is more than any memory holds"))
    return shape


def _instead(data: object) -> str:
    """Say what to write for an object that is not an array."""
    if hasattr(data, "state_dict"):
        return "Use malt.torch.Vector(data)."
    if hasattr(data, "toarray"):
        return "Pass data.toarray()."
    if hasattr(data, "get_params"):
        return "Use malt.sklearn.Vector(data)."
    if hasattr(data, "__next__"):
        return "Try list(data), or malt.torch.Vector(model) for a PyTorch model."
    return "Try np.asarray(data)."


def _like(item: object, wanted: np.dtype[Any] | None, name: str) -> Spec:
    if not isinstance(item, np.ndarray):
        raise TypeError(
            lines(f"{name} is {_briefly(item)}", "expected a numpy array like its neighbours", "Pass np.asarray of it.")
        )
    if isinstance(item, np.ma.MaskedArray):
        raise TypeError(lines(f"{name} is a masked array, and the mask would be lost", do="Pass .filled(…)."))
    if wanted is not None and item.dtype.kind not in "biuf":
        raise TypeError(
            lines(f"{name} has dtype {item.dtype}, which does not convert to {wanted}", "expected real numbers")
        )
    if wanted is None:
        _float(item.dtype, f"{name} has dtype {item.dtype}")
    if not item.flags.c_contiguous:
        # Not converted silently: the vector's array would be laid out otherwise
        # than the caller's, and a loop would no longer give its serial bits (G1).
        raise ValueError(
            lines(
                f"{name} with shape {item.shape} and strides {item.strides} is not C-contiguous",
                do="Pass np.ascontiguousarray(…).",
            )
        )
    if not item.flags.writeable:
        # It is about to be trained. Whoever holds a read-only array has it from
        # somewhere that it must not be written back to.
        raise ValueError(lines(f"{name} is read-only, but a vector must be writable", do="Pass a copy, .copy()."))
    return Spec(item.shape, wanted or item.dtype, np.ascontiguousarray(item, wanted).reshape(item.shape))


def _float(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    if dtype not in FLOATS or not dtype.isnative:
        raise TypeError(
            lines(what, "expected float32 or float64", "Pass dtype=np.float32 to convert, or .astype(np.float32).")
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
        raise ValueError(lines(f"{name} cannot be assigned this", str(e))) from None
    if source.dtype.kind not in "biuf":
        raise TypeError(lines(f"{name} is assigned {_briefly(value)} of dtype {source.dtype}", "expected real numbers"))
    if source.shape not in ((), target.shape):
        raise ValueError(
            lines(
                f"{name} has shape {target.shape}",
                f"expected a value of that shape, got shape {source.shape}",
            )
        )
    np.copyto(target, source, casting="unsafe")
