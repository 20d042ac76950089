"""From C to Python and back: statuses to exceptions, texts, lists of ranks, structs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from malt import _errors
from malt._guide import ELSEWHERE, see

from .loading import ffi, lib

__all__ = ["DTYPES", "check", "describe_array", "encoded", "error", "fields", "rank_list", "string", "text"]

DTYPES = {np.dtype(np.float32): 1, np.dtype(np.float64): 2}  # MALT_FLOAT32, MALT_FLOAT64


# What the sentences of the library call otherwise than Python does.
_WORDS = {
    "; call malt_init again to go on waiting": "",
    "or allow it with uneven=ok": 'as malt.shard(…, even="pad") does, or make the vector with uneven="ok"',
    "allow_disconnected=true": "malt.Graph(…, allow_disconnected=True)",
    "is in a call already, of another thread or around this fold; wait for that one first": "is in a call of another "
    "thread, and serves one call at a time: use a lock, or a vector per thread",
}


def check(status: int) -> None:
    """Raise unless ``status`` is 0."""
    if status:
        raise error(status)


def error(status: int) -> Exception:
    """Return the exception for a status other than 0, with the library's sentence."""
    message = string(lib.malt_errmsg()) or f"malt: the library returned {status} without a sentence"
    message = "malt: " + message.removeprefix("malt: ")
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    if status == lib.MALT_EPEER:
        info = ffi.new("malt_error_info *", {"size": ffi.sizeof("malt_error_info")})
        lib.malt_error(info)
        return _errors.PeerError(message, info.rank, _errors.DEATHS[info.death - 1], string(info.why))
    if status == lib.MALT_EMISMATCH:
        message = _explained(message)
    elif status == lib.MALT_ELEFT and message.endswith("all ranks must make this call"):
        message += f": {ELSEWHERE}"
    return _kinds().get(status, _errors.Error)(message)


_ORDER = ": all ranks must make the same collective calls in the same order"


def _explained(message: str) -> str:
    """Say of ranks that disagree what that most often comes from."""
    if _ORDER not in message:
        return message
    made = re.findall(r"in the making of (vector|segment) ?(\S*): (\S+)", message)
    if len(made) != 2 or made[0][:2] != made[1][:2]:
        return f"{message}: {ELSEWHERE}"
    message = message.partition(_ORDER)[0] + ": what is made together must be alike"
    if made[0][2] != made[1][2]:  # the lengths, or the types
        message += (
            '; where the length comes from the data, agree first, as in `n = malt.allreduce(n, "max")`; for SVMlight '
            "files pass n_features="
        )
    return message + see("Numbers that have to agree")


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
    }


def describe_array(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Fill in a malt_array; what is returned has to live as long as that."""
    axes = ffi.new("uint64_t[]", shape)
    array.count, array.dtype, array.shape, array.axes = math.prod(shape), DTYPES[dtype], axes, len(shape)
    return axes


MAX_TEXT = 64 << 20
"""Bytes that a text may have, which may be a graph: ``maxText`` of the library."""


def encoded(value: str | None) -> Any:
    """Return text for a ``const char *``; None is NULL."""
    if value is None:
        return ffi.NULL
    if not isinstance(value, str):  # options have been checked
        raise TypeError(f"malt: name={value!r}: a string is expected, such as name='model'")
    if "\0" in value:
        raise ValueError(f"malt: {value!r} contains a zero byte, which no name or option has")
    data = value.encode("utf-8", "surrogateescape")
    if len(data) > MAX_TEXT:
        raise ValueError(f"malt: {value[:40]!r}… has {len(data)} bytes: a text has at most {MAX_TEXT}")
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
