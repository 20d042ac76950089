"""How a value travels in ``broadcast`` and ``allgather``.

A value is written as a tag, one byte, followed by what the tag asks for; all
numbers are little-endian, a size is a u32 and a count of bytes a u64::

    N T F          None, True, False
    i              an int: count, that many bytes, two's complement
    d c            a float: f64; a complex: two f64
    s b            a str (UTF-8), a bytes: count, bytes
    a x            an array, a numpy scalar: dtype (u8 length, ASCII such as "<f4"),
                   dimensions (u8), a u64 each, then the elements in C order
    g              an array of another library: what (u8 length, ASCII such as
                   "torch:bfloat16:cpu:"), dimensions (u8), a u64 each, count, bytes
    l t            a list, a tuple: size, its items
    m o n          a dict, an OrderedDict, a Counter: size, key, value, key, value, …

The decoder trusts nothing: every length is compared with what is there before
anything is made of it, depth is bounded, and a dtype must be a plain one. Nothing
is ever unpickled, so a message from another rank cannot run code. An object of another
class derived from one of these, such as a named tuple, arrives as the plain kind.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors import MismatchError
from .._guide import lines
from . import foreign

# Deeper nesting is refused on both sides: a list that contains itself has no end,
# and a hostile message must not exhaust the stack.
MAX_DEPTH = 64

_SIZE = struct.Struct("<I")
_COUNT = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")

# Numbers, booleans, dates and fixed-width text: dtypes whose bytes are their value.
_PLAIN_KINDS = "biufcmMSU"
_PLAIN_DTYPE = re.compile(r"[<>|=][biufcmMSU]\d{1,9}(\[\d{0,9}\w{1,2}\])?", re.ASCII)


def encode(value: object) -> bytes:
    """Write ``value`` down.

    Parameters
    ----------
    value : None, bool, int, float, complex, str, bytes, array, numpy scalar
        Or a list, tuple, dict, OrderedDict or Counter of these, also nested.

    Raises
    ------
    TypeError
        For anything else: the message says where in the value it is.
    ValueError
        If the value is nested more than 64 deep, or contains itself.

    Examples
    --------
    >>> decode(encode({"loss": 0.25, "ranks": [0, 1]}))
    {'loss': 0.25, 'ranks': [0, 1]}
    """
    parts: list[bytes | memoryview] = []
    _write(value, parts.append, "value", 0)
    return b"".join(parts)


def _write(value: object, put: Callable[[bytes | memoryview], None], where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(
            lines(f"{where[:60]}…: nested more than {MAX_DEPTH} deep, or containing itself", do="Send a flatter value.")
        )
    if value is None:
        put(b"N")
    elif value is True or value is False:
        put(b"T" if value else b"F")
    elif isinstance(value, np.ndarray | np.generic):  # before float and str: numpy's are theirs too
        _write_array(value, put, where)
    elif isinstance(value, int):
        number = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        put(b"i" + _COUNT.pack(len(number)) + number)
    elif isinstance(value, float):
        put(b"d" + _FLOAT.pack(value))
    elif isinstance(value, complex):
        put(b"c" + _COMPLEX.pack(value.real, value.imag))
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        put(b"s" + _COUNT.pack(len(text)) + text)
    elif isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        put(b"b" + _COUNT.pack(len(data)) + data)
    elif isinstance(value, list | tuple):
        put((b"l" if isinstance(value, list) else b"t") + _SIZE.pack(len(value)))
        for i, item in enumerate(value):
            _write(item, put, f"{where}[{i}]", depth + 1)
    elif isinstance(value, dict):
        put(_MAPPINGS.get(type(value), b"m") + _SIZE.pack(len(value)))
        for key, item in value.items():
            _write(key, put, f"a key of {where}", depth + 1)
            _write(item, put, f"{where}[{key!r}]", depth + 1)
    elif foreign.known(value):
        _write_foreign(foreign.packed(value, where), put, where)
    else:
        raise TypeError(
            lines(
                f"{where} is a {type(value).__module__}.{type(value).__qualname__}",
                "MALT sends None, numbers, text, bytes, arrays, tensors, lists and dicts",
                "Convert it, for example with np.asarray.",
            )
        )


def _write_array(
    value: np.ndarray[Any, Any] | np.generic, put: Callable[[bytes | memoryview], None], where: str
) -> None:
    dtype = value.dtype
    if dtype.kind not in _PLAIN_KINDS or dtype.itemsize == 0:
        raise TypeError(
            lines(
                f"{where} has dtype {dtype}",
                "only arrays of numbers, booleans, dates and fixed-width text can be sent",
                "Convert it with astype, or send its parts.",
            )
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            lines(f"{where} is a masked array", "its mask would be lost", "Send .filled(…), or .data and .mask.")
        )
    name = dtype.str.encode("ascii")
    tag = b"a" if isinstance(value, np.ndarray) else b"x"
    put(tag + bytes([len(name)]) + name + bytes([value.ndim]) + b"".join(_COUNT.pack(n) for n in value.shape))
    put(value.tobytes())


def _write_foreign(
    value: foreign.Packed | np.ndarray[Any, Any], put: Callable[[bytes | memoryview], None], where: str
) -> None:
    if isinstance(value, np.ndarray):
        _write_array(value, put, where)
        return
    what = value.what.encode("ascii")
    put(b"g" + bytes([len(what)]) + what + bytes([len(value.shape)]) + b"".join(_COUNT.pack(n) for n in value.shape))
    put(_COUNT.pack(value.data.nbytes))
    put(value.data.data)


def decode(data: bytes | bytearray | memoryview) -> Any:
    """Read what `encode` wrote; arrays are new and writable.

    Raises
    ------
    MismatchError
        If ``data`` is not such a message, whatever else it is.
    """
    reader = _Reader(memoryview(data).cast("B"))
    try:
        value = reader.value(0)
    except (ValueError, TypeError, AttributeError, RuntimeError, MemoryError, OverflowError, struct.error) as e:
        raise MismatchError(lines("not a message of this version of malt", str(e))) from None
    if reader.at != len(reader.data):
        raise MismatchError(
            lines("not a message of this version of malt", f"{len(reader.data) - reader.at} bytes are left over")
        )
    return value


class _Reader:
    """A position in a message; each method takes what it reads."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise ValueError(f"{count} bytes announced at {self.at}, {len(self.data) - self.at} there")
        self.at += count
        return self.data[self.at - count : self.at]

    def counted(self) -> memoryview:
        return self.take(_COUNT.unpack(self.take(8))[0])

    def items(self, depth: int, per_item: int) -> list[Any]:
        # Every item takes a byte or more, so a size cannot ask for more than there is.
        size = _SIZE.unpack(self.take(4))[0] * per_item
        if size > len(self.data) - self.at:
            raise ValueError(f"{size} items announced at {self.at}, at most {len(self.data) - self.at} there")
        return [self.value(depth) for _ in range(size)]

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        tag = bytes(self.take(1))
        read = _READ.get(tag)
        if read is None:
            raise ValueError(f"unknown tag {tag!r} at {self.at - 1}")
        return read(self, depth + 1)

    def mapping(self, depth: int) -> dict[Any, Any]:
        items = self.items(depth, 2)
        return dict(zip(items[::2], items[1::2], strict=True))

    def array(self) -> np.ndarray[Any, Any]:
        name = str(self.take(self.take(1)[0]), "ascii")
        if not _PLAIN_DTYPE.fullmatch(name):
            raise ValueError(f"dtype {name!r} at {self.at}")
        dtype = np.dtype(name)
        if dtype.itemsize == 0:
            raise ValueError(f"dtype {name!r} without size at {self.at}")
        shape = tuple(_COUNT.unpack(self.take(8))[0] for _ in range(self.take(1)[0]))
        elements = self.take(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(elements, dtype).reshape(shape).copy()

    def foreign(self) -> Any:
        what = str(self.take(self.take(1)[0]), "ascii")
        shape = tuple(_COUNT.unpack(self.take(8))[0] for _ in range(self.take(1)[0]))
        data = self.counted()
        if math.prod(shape) > len(data):
            raise ValueError(f"{shape} announced in {len(data)} bytes")
        return foreign.unpacked(what, shape, data)


_MAPPINGS: dict[type, bytes] = {OrderedDict: b"o", Counter: b"n"}

_READ: dict[bytes, Callable[[_Reader, int], Any]] = {
    b"N": lambda r, _: None,
    b"T": lambda r, _: True,
    b"F": lambda r, _: False,
    b"i": lambda r, _: int.from_bytes(r.counted(), "little", signed=True),
    b"d": lambda r, _: _FLOAT.unpack(r.take(8))[0],
    b"c": lambda r, _: complex(*_COMPLEX.unpack(r.take(16))),
    b"s": lambda r, _: str(r.counted(), "utf-8", "surrogatepass"),
    b"b": lambda r, _: bytes(r.counted()),
    b"a": lambda r, _: r.array(),
    b"x": lambda r, _: r.array()[()],
    b"g": lambda r, _: r.foreign(),
    b"l": lambda r, depth: r.items(depth, 1),
    b"t": lambda r, depth: tuple(r.items(depth, 1)),
    b"m": lambda r, depth: r.mapping(depth),
    b"o": lambda r, depth: OrderedDict(r.mapping(depth)),
    b"n": lambda r, depth: Counter(r.mapping(depth)),
}
