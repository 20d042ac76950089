"""The typed encoding: round trips, refusals, and a decoder that survives anything."""

from __future__ import annotations

import math
import random
from collections import Counter, OrderedDict

import numpy as np
import pytest

from malt import MismatchError
from malt._job.codec import MAX_DEPTH, decode, encode

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    2**63,
    -(2**63),
    10**40,
    0.0,
    -0.0,
    math.inf,
    1e-300,
    1j,
    complex(-0.0, 3),
    "",
    "é \0 \U0001f600",
    "\ud800",
    b"",
    b"\0\xff",
    [],
    (),
    {},
    [1, [2, (3, "x")]],
    {"a": {1: [None]}, (1, "b"): b"c", None: 0.5},
    OrderedDict(b=1, a=Counter("aab")),
]

ARRAYS = [
    np.array(3.5),
    np.zeros((0, 4), np.int8),
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=">i4").reshape(3, 2).T,
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.array(["ab", "c"]),
    np.array([b"ab", b"c"]),
    np.array(["2020-02-29", "NaT"], "M8[D]"),
    np.array([3], "m8[ns]"),
    np.arange(8.0)[::2],
    np.float16([1, np.nan]),
    np.longdouble([1.5]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_equal_and_of_the_same_type(value: object) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)  # tells -0.0 from 0.0


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_come_back_equal_writable_and_their_own(array: np.ndarray) -> None:
    data = encode(array)
    back = decode(data)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable
    assert back.flags.owndata or back.base.flags.owndata


@pytest.mark.parametrize(
    "scalar", [np.float32(1.5), np.int64(-3), np.bool_(True), np.str_("x"), np.datetime64("2020", "Y")]
)
def test_numpy_scalars_stay_scalars_of_their_type(scalar: np.generic) -> None:
    back = decode(encode(scalar))
    assert back == scalar
    assert type(back) is type(scalar)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (object(), "value is a builtins.object"),
        ({"a": [1, {2}]}, r"value\['a'\]\[1\] is a builtins.set"),
        ({frozenset(): 1}, "a key of value is a builtins.frozenset"),
        (np.array([object()]), "value has dtype object"),
        ([np.zeros(2, [("x", "f4")])], r"value\[0\] has dtype"),
        (np.ma.masked_array([1.0], [True]), "masked"),
    ],
)
def test_what_does_not_travel_is_refused_and_located(value: object, where: str) -> None:
    with pytest.raises(TypeError, match=where):
        encode(value)


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="containing itself"):
        encode(endless)


def test_nesting_is_bounded_on_both_sides() -> None:
    value: object = 0
    for _ in range(MAX_DEPTH):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(ValueError, match="nested"):
        encode([value])
    with pytest.raises(MismatchError, match="nested"):
        decode(b"l\1\0\0\0" * 10_000 + b"N")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"?",
        b"NN",
        b"i" + b"\xff" * 8,
        b"s\1\0\0\0\0\0\0\0\xff",
        b"l\xff\xff\xff\xff",
        b"m\1\0\0\0l\0\0\0\0N",  # a list as a key
        b"a\3<O8\1" + b"\1" + b"\0" * 15,  # objects
        b"a\4<f99\0",
        b"a\3<f4\2" + b"\xff" * 16,  # more elements than any memory
        b"a\3<f4\2" + b"\0" * 8 + b"\xff" * 8,  # no elements, of an absurd shape
        b"a\3|S0\1" + b"\xff" * 8,  # elements of no size
        b"a\3<f4\xff" + b"\0" * 2040,  # more dimensions than numpy has
    ],
)
def test_a_message_that_is_none_is_a_mismatch(message: bytes) -> None:
    with pytest.raises(MismatchError, match="not a message of this version of malt"):
        decode(message)


def test_every_beginning_of_a_message_is_refused() -> None:
    message = encode([VALUES, ARRAYS])
    for cut in range(len(message)):
        with pytest.raises(MismatchError):
            decode(message[:cut])


@pytest.mark.parametrize("seed", range(4))
def test_fuzz_the_decoder_returns_a_value_or_a_mismatch(seed: int) -> None:
    random_ = random.Random(seed)
    corpus = [encode(value) for value in [*VALUES, *ARRAYS]]
    decoded = refused = 0
    for _ in range(10_000):
        message = bytearray(random_.choice(corpus))
        for _ in range(random_.randint(1, 3)):
            at = random_.randrange(len(message) + 1)
            message[at : at + random_.randint(0, 2)] = random_.randbytes(random_.randint(0, 3))
        try:
            decode(message)
            decoded += 1
        except MismatchError:
            refused += 1
    assert decoded > 100  # the mutations reach past the first check
    assert refused > 100
