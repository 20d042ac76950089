"""Memory of the library under numpy arrays, and how long it stays."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from malt._errors import Error

from .convert import check, fields
from .loading import ffi, forked, lib

Counters: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]
"""Totals, and one dict per edge, by the field names of malt.h."""

_bookkeeper: Callable[[Counters], None] | None = None
_memories: weakref.WeakSet[Memory] = weakref.WeakSet()


def book_with(bookkeeper: Callable[[Counters], None]) -> None:
    """Have the counters of every object handed to ``bookkeeper`` before they are gone."""
    global _bookkeeper
    _bookkeeper = bookkeeper


def book_all() -> None:
    """Book the objects that are still open: the process is about to end."""
    for memory in list(_memories):
        memory.book()


def counters(handle: int | None = None) -> Counters:
    """Read what a vector or segment has counted, or without one what the collective calls of the job have waited."""
    read = lib.malt_job_stats if handle is None else partial(lib.malt_object_stats, handle)
    totals, n = ffi.new("malt_totals *"), ffi.new("uint32_t *")
    check(read(totals, ffi.NULL, 0, n))
    edges = ffi.new("malt_edge[]", n[0])
    check(read(totals, edges, len(edges), n))
    return fields(totals[0]), [fields(edge) for edge in edges]


class Memory:
    """The mapped memory of a vector or segment, kept by every array that views it.

    When the last of them is gone the object is closed, if it was not before, and
    the memory is given back.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_handle", "_open", "_pointer")

    def __init__(self, pointer: Any, nbytes: int, handle: int) -> None:
        self.__array_interface__: dict[str, Any] = _bytes_at(pointer, nbytes, read_only=False)
        self._pointer, self._handle, self._open = pointer, handle, True
        _memories.add(self)

    @property
    def address(self) -> int:
        """Where it begins."""
        address: int = self.__array_interface__["data"][0]
        return address

    @property
    def nbytes(self) -> int:
        """Its length."""
        nbytes: int = self.__array_interface__["shape"][0]
        return nbytes

    def close(self) -> int:
        """Leave the object, once; the memory stays. Returns a status."""
        if not self._open:
            return 0
        self.book()
        status: int = lib.malt_object_close(self._handle)
        self._open = status == lib.MALT_EBUSY
        return status

    def outlive(self) -> None:
        """Leave the object, which goes on with other memory, to that."""
        self._open = False

    def book(self) -> None:
        """Hand the counters on before they are gone."""
        if self._open and _bookkeeper is not None:
            with contextlib.suppress(Error):  # busy in another thread
                _bookkeeper(counters(self._handle))

    def __del__(self) -> None:
        # At the end of the process the kernel does this, and in a forked child
        # the memory is still the parent's.
        if not sys.is_finalizing() and not forked():
            self.close()
            lib.malt_unmap(self._pointer)


class Lent:
    """The memory of one update during a fold; every array that views it keeps it.

    It also keeps the vector's memory, and thereby the vector: an array kept
    longer than allowed sees the next updates, but never unmapped memory.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_memory")

    def __init__(self, update: Any, memory: Memory) -> None:
        self.__array_interface__ = _bytes_at(update.data, update.bytes, read_only=True)
        self._memory = memory


def _bytes_at(pointer: Any, nbytes: int, *, read_only: bool) -> dict[str, Any]:
    """Return what tells numpy of an array of bytes (its array interface)."""
    return {
        "data": (int(ffi.cast("uintptr_t", pointer)), read_only),
        "shape": (nbytes,),
        "typestr": "|u1",
        "version": 3,
    }
