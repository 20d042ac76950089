"""Finds a vector that the training loop never changes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from . import _lib
from ._arrays import Array
from ._guide import lines

__all__ = ["Idle"]


class Idle:
    """Finds a vector that is synced but never changed, as ``w = w - g`` does it.

    Until the second sync it compares the memory with what it was after the one
    before, by a checksum.
    """

    LARGEST = 1 << 28  # bytes; beyond, the checksum would take as long as the sync

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._last = _fingerprint(arrays)
        self._unchanged = 0

    def before_sync(self, arrays: Sequence[Array], name: str) -> bool:
        """Tell whether there is no more to look for."""
        if _fingerprint(arrays) != self._last or not any(a.size for a in arrays):
            return True
        self._unchanged += 1
        if self._unchanged < 2:
            return False
        _lib.warn(
            lines(
                f"the array of {name} has not changed between its first syncs, so nothing is learnt",
                "`w = w - g` makes a new array, and leaves that of the vector as it was",
                "Write `w -= g`, or `v.array[:] = w - g`.",
                topic="unchanged",
            )
        )
        return True

    def after_sync(self, arrays: Sequence[Array]) -> None:
        self._last = _fingerprint(arrays)


def _fingerprint(arrays: Sequence[Array]) -> int:
    value = 0
    for a in arrays:
        value = zlib.crc32(a.reshape(-1).view(np.uint8).data, value)
    return value
