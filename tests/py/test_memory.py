"""The arrays of a vector: views of its memory, valid for as long as they are referenced."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path

import numpy as np
import pytest

import malt


def test_array_is_a_plain_writable_view() -> None:
    with malt.Vector(np.arange(6, dtype=np.float32).reshape(2, 3)) as v:
        w = v.array
        assert type(w) is np.ndarray
        assert (w.shape, w.dtype, w.flags.c_contiguous, w.flags.writeable) == ((2, 3), np.float32, True, True)
        np.testing.assert_array_equal(w, [[0, 1, 2], [3, 4, 5]])
        w[0, 0] = 7
        assert v.array[0, 0] == v.flat[0] == v.arrays[0][0, 0] == 7
        assert np.shares_memory(v.array, v.flat)


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "expected"),
    [
        (3, None, (3,), np.float64),
        ((2, 3), None, (2, 3), np.float64),
        ([2, 3], "f4", (2, 3), np.float32),
        ((), None, (), np.float64),
        (0, None, (0,), np.float64),
        ((3, 0), np.float32, (3, 0), np.float32),
        (np.int32(4), None, (4,), np.float64),
        (np.ones(2, np.int8), np.float32, (2,), np.float32),
        (np.array(2.5), None, (), np.float64),
        (np.ones(2), np.float32, (2,), np.float32),
    ],
)
def test_data_and_dtype(data: object, dtype: object, shape: tuple[int, ...], expected: type) -> None:
    with malt.Vector(data, dtype=dtype) as v:
        assert v.array.shape == shape
        assert v.array.dtype == expected
        first = data if isinstance(data, np.ndarray) else 0
        np.testing.assert_array_equal(v.array, np.full(shape, first) if np.ndim(first) == 0 else first)
        v.sync()
        v.allreduce()


def test_the_values_are_copied() -> None:
    data = np.ones(3)
    with malt.Vector(data) as v:
        v.array += 1
        assert data.tolist() == [1, 1, 1]


def test_several_arrays_keep_their_types_and_travel_as_one() -> None:
    with malt.Vector([np.ones((2, 2), np.float32), np.zeros(0), np.full(3, 2.0), np.array(5, np.float32)]) as v:
        assert [(a.shape, a.dtype.name) for a in v.arrays] == [
            ((2, 2), "float32"),
            ((0,), "float64"),
            ((3,), "float64"),
            ((), "float32"),
        ]
        assert [a.sum() for a in v.arrays] == [4, 0, 6, 5]
        v.arrays = [np.zeros((2, 2)), [], [1, 2, 3], 9]
        assert [a.sum() for a in v.arrays] == [0, 0, 6, 9]
        with pytest.raises(TypeError, match=r"has 4 arrays\nUse \.arrays"):
            _ = v.array
        with pytest.raises(TypeError, match="float32 and float64"):
            _ = v.flat
        assert "2x2 x float32 + 0 x float64 + 3 x float64 + 1 x float32" in repr(v)


def test_flat_shows_arrays_of_one_type_without_gaps() -> None:
    with malt.Vector([np.ones((2, 2)), np.zeros(3)]) as v:
        assert v.flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
        v.flat = np.arange(7)
        assert v.arrays[0].tolist() == [[0, 1], [2, 3]]
        assert v.arrays[1].tolist() == [4, 5, 6]


def test_assigning_copies() -> None:
    with malt.Vector(3) as v:
        w, source = v.array, np.arange(3.0)
        v.array = source
        source[0] = 99
        assert w.tolist() == [0, 1, 2]
        v.array = [3, 2, 1]
        assert w.tolist() == [3, 2, 1]
        v.array = 4
        assert w.tolist() == [4, 4, 4]
        v.array += 1
        assert v.array is w
        assert w.tolist() == [5, 5, 5]
        v.array = w + np.arange(3)
        assert w.tolist() == [5, 6, 7]
        v.array = w[::-1]  # overlapping
        assert w.tolist() == [7, 6, 5]


def mapped(address: int) -> bool:
    """Tell whether there is memory at an address of this process."""
    spans = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) ", Path("/proc/self/maps").read_text(), re.MULTILINE)
    return any(int(start, 16) <= address < int(end, 16) for start, end in spans)


BIG = 64 << 20  # bytes: room enough that nothing else settles in the middle of it


def test_views_stay_valid_after_close_and_the_memory_goes_with_the_last() -> None:
    v = malt.Vector(BIG // 4, dtype=np.float32)
    part = v.array[BIG // 8 : BIG // 8 + 10]
    address = part.ctypes.data
    v.array[:] = 3
    v.close()
    del v
    gc.collect()
    part += 1
    assert part.tolist() == [4] * 10
    view = memoryview(part)
    del part
    gc.collect()
    assert view[0] == 4
    assert mapped(address)
    del view
    gc.collect()
    assert not mapped(address)


def test_a_vector_that_is_dropped_is_closed_with_its_last_view() -> None:
    v = malt.Vector(BIG // 8)
    w = v.array[BIG // 16 :]
    address = w.ctypes.data
    gone = weakref.ref(v)
    del v
    gc.collect()
    assert gone() is None
    w += 1
    assert mapped(address)
    del w
    gc.collect()
    assert not mapped(address)


def test_the_buffer_of_a_segment_outlives_it() -> None:
    s = malt.Segment(64)
    buffer = s.buffer
    buffer[:3] = b"abc"
    assert (len(buffer), buffer.readonly, buffer.format) == (64, False, "B")
    s.close()
    del s
    gc.collect()
    assert bytes(buffer[:4]) == b"abc\0"


def test_an_empty_segment() -> None:
    with malt.Segment(0, consistency="async") as s:
        assert len(s.buffer) == 0
        assert s.scatter() == 0
        assert s.updates() == []
