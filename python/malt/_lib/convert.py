"""From C to Python and back: statuses to exceptions, texts, lists of ranks, structs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from malt import _errors
from malt._frames import spoken

from .._guide import lines
from .loading import ffi, lib

DTYPES = {np.dtype(np.float32): 1, np.dtype(np.float64): 2}  # MALT_FLOAT32, MALT_FLOAT64


def check(status: int) -> None:
    """Raise unless ``status`` is 0."""
    if status:
        raise error(status)


def failure() -> Any:
    """Return the malt_error_info of this thread's last failure; its texts are valid until the next call."""
    info = ffi.new("malt_error_info *", {"size": ffi.sizeof("malt_error_info")})
    lib.malt_error(info)
    return info


def error(status: int) -> Exception:
    """Return the exception for a status other than 0."""
    info = failure()
    message = spoken(string(info.message)) or lines(f"the library returned {status} without a message")
    if status == lib.MALT_EPEER:
        return _errors.PeerError(message, info.rank, _errors.DEATHS[info.death - 1], string(info.why))
    return _kinds().get(status, _errors.Error)(message)


def _kinds() -> dict[int, type[Exception]]:
    return {
        lib.MALT_EINVAL: ValueError,
        lib.MALT_EINIT: _errors.StateError,
        lib.MALT_EHANDLE: _errors.StaleError,
        lib.MALT_EBUSY: _errors.StateError,
        lib.MALT_ETIMEOUT: _errors.TimeoutError,
        lib.MALT_ELEFT: _errors.StateError,
        lib.MALT_EMISMATCH: _errors.MismatchError,
        lib.MALT_ENOMEM: _errors.OutOfMemoryError,
        lib.MALT_EUNSUPPORTED: _errors.UnsupportedError,
        lib.MALT_ESTATE: _errors.StateError,
        lib.MALT_EFORK: _errors.StateError,
        lib.MALT_ECANCELLED: _errors.StateError,
        lib.MALT_EIO: _errors.HostError,
        lib.MALT_EEXPELLED: _errors.ExpelledError,
    }


def describe_array(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Fill in a malt_array; what is returned has to live as long as that."""
    axes = ffi.new("uint64_t[]", shape)
    array.count, array.dtype, array.shape, array.axes = math.prod(shape), DTYPES[dtype], axes, len(shape)
    return axes


MAX_TEXT = 64 << 20
"""Bytes that a text may have, which may be a graph: ``maxGraph`` of the library."""


def encoded(value: str | None) -> Any:
    """Return text for a ``const char *``; None is NULL."""
    if value is None:
        return ffi.NULL
    if not isinstance(value, str):  # options have been checked
        raise TypeError(lines(f"name={value!r}", "expected a string, such as name='model'"))
    if "\0" in value:
        raise ValueError(lines(f"{value!r} contains a zero byte", "a name or option has none"))
    data = value.encode("utf-8", "surrogateescape")
    if len(data) > MAX_TEXT:
        raise ValueError(lines(f"{value[:40]!r}… has {len(data)} bytes", f"a text has at most {MAX_TEXT}"))
    return data


def string(chars: Any) -> str:
    """Return a C string."""
    return str(ffi.string(chars), "utf-8", "replace")


def text(fill: Callable[..., int]) -> str:
    """Return the text of a function with the arguments (char *text, cap, *need)."""
    cap, need = 256, ffi.new("uint64_t *")
    while True:
        chars = ffi.new("char[]", cap)
        check(fill(chars, cap, need))
        if need[0] <= cap:
            return string(chars)
        cap = need[0]


def rank_list(fill: Callable[..., int]) -> list[int]:
    """Return the ranks of a function with the arguments (int32_t *ranks, cap, *n)."""
    cap, n = 64, ffi.new("uint32_t *")
    while True:
        found = ffi.new("int32_t[]", cap)
        check(fill(found, cap, n))
        if n[0] <= cap:
            return list(found[0 : n[0]])
        cap = n[0]


def fields(struct: Any) -> dict[str, Any]:
    """Return a struct by its field names."""
    return {name: getattr(struct, name) for name in dir(struct) if name != "reserved"}
