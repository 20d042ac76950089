"""Arrays in files of their own: npy and IDX.

Mapped where the file is here; otherwise what lies between a rank's rows is read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from ..._guide import lines
from ..turns import Cut
from .cuts import in_order, local_cuts
from .files import BLOCK, File, readinto
from .memory import see_memory
from .team import Team

Header = tuple[np.dtype[Any], tuple[int, ...], bool, int]
"""dtype, shape, whether in Fortran's order, and the byte with which the elements begin."""

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def npy_header(f: IO[bytes], name: str) -> Header:
    """Read what a npy file says of itself."""
    magic = f.read(6)
    if magic != b"\x93NUMPY":
        raise ValueError(
            lines(f"load: {name} is not a npy file", f"it begins with {magic!r}", "Pass the format= that it has.")
        )
    version = tuple(f.read(2))
    length = int.from_bytes(f.read(2 if version == (1, 0) else 4), "little")
    begin = 6 + 2 + (2 if version == (1, 0) else 4) + length
    # numpy's own reader of headers begins after the version, at the length.
    packed = length.to_bytes(2 if version == (1, 0) else 4, "little") + f.read(length)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = read(io.BytesIO(packed))
    except ValueError as e:
        raise ValueError(lines(f"load: {name}: the header of the npy file is damaged", str(e))) from e
    if any(n < 0 for n in shape):
        raise ValueError(
            lines(f"load: {name}: the header of the npy file is damaged", f"it declares the shape {shape}")
        )
    if dtype.hasobject:
        raise ValueError(
            lines(
                f"load: {name} holds Python objects",
                "only unpickling could read them, and that can run code",
                "Save numbers or text of fixed width.",
            )
        )
    return dtype, shape, fortran, begin


def idx_header(f: IO[bytes], name: str) -> Header:
    """Read what an IDX file, MNIST's format, says of itself."""
    magic = f.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _IDX_TYPES or not magic[3]:
        raise ValueError(
            lines(f"load: {name} is not an IDX file", f"it begins with {magic!r}", "Pass the format= that it has.")
        )
    sizes = f.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise ValueError(lines(f"load: {name} ends in its header", do="Fetch the file again."))
    shape = tuple(int(n) for n in np.frombuffer(sizes, ">u4"))
    return np.dtype(_IDX_TYPES[magic[2]]), shape, False, 4 + len(sizes)


def promised(name: str, expected: int, most: int | None, compression: str = "") -> None:
    """Raise if a header promises more bytes than a file can have, before memory is asked for."""
    if most is not None and most < expected:
        raise ValueError(
            lines(
                f"load: {name} has {most:,} bytes{' at most, unpacked' if compression else ''}",
                f"its header declares {expected:,}",
                "Fetch the file again.",
            )
        )


class Arrays:
    """The rows of arrays that are one after the other.

    Parameters
    ----------
    header : callable
        Reads what a file says of itself.
    dtype : dtype, optional
        None: that of the files, in this machine's order of bytes.
    """

    def __init__(
        self,
        files: list[File],
        team: Team,
        *,
        header: Callable[[IO[bytes], str], Header],
        dtype: np.dtype[Any] | None,
    ) -> None:
        self._files = files
        self._team = team
        self._headers: list[Header] = []
        self._dtype = dtype
        self._header = header

        def look() -> None:
            for file in files:
                with file.plain() as (f, _):
                    self._headers.append(header(f, file.name))
                self._check(file, self._headers[-1])

        team.share(look)

    def _check(self, file: File, header: Header) -> None:
        dtype, shape, _, begin = header
        if not shape:
            raise ValueError(lines(f"load: {file.name} holds a single number", "expected an array with rows"))
        first = self._headers[0]
        if shape[1:] != first[1][1:] or dtype != first[0]:
            raise ValueError(
                lines(
                    f"load: {file.name} holds rows of shape {shape[1:]} and {dtype}",
                    f"{self._files[0].name} has rows of shape {first[1][1:]} and {first[0]}",
                    "Load only files with rows of the same shape together.",
                )
            )
        promised(file.name, begin + dtype.itemsize * math.prod(shape), file.most, file.compression)

    def count(self) -> int:
        return sum(shape[0] for _, shape, _, _ in self._headers)

    def part(self, cut: Cut) -> np.ndarray[Any, Any]:
        lengths = [shape[0] for _, shape, _, _ in self._headers]
        dtype, shape, _, _ = self._headers[0]
        mapped = len(self._files) == 1 and self._files[0].local and not self._files[0].compression
        wanted = self._dtype or dtype.newbyteorder("=")
        if not (mapped and isinstance(cut, slice) and dtype == wanted):
            rows = len(range(sum(lengths))[cut]) if isinstance(cut, slice) else len(cut)
            each = math.prod(shape[1:]) * max(dtype.itemsize, wanted.itemsize)
            self._team.share(lambda: see_memory(rows * each))
        if mapped:
            part: np.ndarray[Any, Any] = np.asarray(self._mapped(0)[cut])
        else:
            parts: list[np.ndarray[Any, Any]] = []

            def read() -> None:
                parts.extend(self._rows(i, local) for i, local in local_cuts(cut, lengths))

            self._team.share(read)
            if len(parts) == 1:
                (part,) = parts
            else:
                part = np.concatenate([np.empty((0, *shape[1:]), dtype), *parts])
            order = in_order(cut)
            part = part if order is None else part[order]
        return part.astype(wanted, copy=False)

    def _mapped(self, i: int) -> np.ndarray[Any, Any]:
        """Return the array of a file that is here; writing to it changes this process's pages only."""
        dtype, shape, fortran, begin = self._headers[i]
        if not math.prod(shape) or not dtype.itemsize:
            return np.empty(shape, dtype)
        return np.memmap(self._files[i].path, dtype, "c", begin, shape, "F" if fortran else "C")

    def _rows(self, i: int, cut: Cut) -> np.ndarray[Any, Any]:
        file = self._files[i]
        dtype, shape, fortran, begin = self._headers[i]
        if file.local and not file.compression:
            return np.asarray(self._mapped(i)[cut])
        if fortran:  # its rows are spread over all of it
            flat = self._streamed(file, begin, dtype, (math.prod(shape),), slice(0, None))
            return np.ascontiguousarray(flat.reshape(shape, order="F")[cut])
        return self._streamed(file, begin, dtype, shape, cut)

    def _streamed(
        self, file: File, begin: int, dtype: np.dtype[Any], shape: tuple[int, ...], cut: Cut
    ) -> np.ndarray[Any, Any]:
        """Read what lies between the first and the last row of a cut, and keep its rows."""
        numbers = np.arange(shape[0])[cut]
        size = dtype.itemsize * math.prod(shape[1:])
        part = np.empty((len(numbers), *shape[1:]), dtype)
        if not part.size:
            return part
        low, high = int(numbers[0]), int(numbers[-1]) + 1
        flat: Any = part.reshape(len(numbers), -1).view(np.uint8)
        self._team.progress.begin("reading", len(part) * size)
        step = max(1, BLOCK // size)
        with file.plain() as (f, _):
            file.forward(f, begin + low * size)
            for row in range(low, high, step):
                end = min(high, row + step)
                a, b = np.searchsorted(numbers, (row, end))
                whole = b - a == end - row
                block: Any = flat[a:b] if whole else np.empty((end - row, size), np.uint8)
                if readinto(f, memoryview(block).cast("B")) < block.nbytes:
                    raise ValueError(
                        lines(
                            f"load: {file.name} ends before its {shape[0]:,} rows of {size} bytes",
                            do="Fetch the file again.",
                        )
                    )
                if not whole:
                    flat[a:b] = block[numbers[a:b] - row]
                self._team.progress.add((b - a) * size)
        return part
