"""Finds a vector that the training loop never changes."""

from __future__ import annotations

import sys
import weakref
import zlib
from collections.abc import Sequence

import numpy as np

from . import _lib
from ._arrays import Array
from ._guide import lines

__all__ = ["Idle"]


class Idle:
    """Finds a vector that is exchanged but never changed.

    In its first two exchanges it compares the memory with what it was before, by a checksum, and
    does so too with the arrays that the vector was made of: a loop may change one of these by mistake.
    """

    LARGEST = 1 << 28  # bytes; beyond, the checksum would take as long as the sync

    def __init__(self, arrays: Sequence[Array], given: object) -> None:
        self._last = _fingerprint(arrays)
        self._looks = 0
        originals = given if isinstance(given, list | tuple) else [given]
        self._given = [
            ("array" if a is given else f"arrays[{i}]", weakref.ref(a), _fingerprint([a]))
            for i, a in enumerate(originals)
            if isinstance(a, np.ndarray)
        ]

    def look(self, vector: object, arrays: Sequence[Array], name: str, synced: bool) -> bool:
        """Tell, before an exchange, whether there is no more to look for.

        Outside of `sync` a vector may well be left as it is, as by a rank that only averages; there
        it counts only whether an array that the vector was made of has changed.
        """
        if _fingerprint(arrays) != self._last or not any(a.size for a in arrays):
            return True
        self._looks += 1
        for own, reference, before in self._given:
            original = reference()
            if original is not None and _fingerprint([original]) != before:
                _lib.warn(_of_original(_variable(original), f"{_variable(vector) or 'v'}.{own}", name))
                return True
        if self._looks < 2:
            return False
        if synced:
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


def _of_original(variable: str, own: str, name: str) -> str:
    return lines(
        f"{f'`{variable}`' if variable else 'the array that it was made of'} changes, and the array of {name} does "
        "not, so nothing is learnt",
        f"malt.Vector copies the values of the array that it is given: `{own}` is another one",
        f"Write `{variable or 'w'} = {own}` after making the vector, and change that.",
        topic="unchanged",
    )


def _fingerprint(arrays: Sequence[Array]) -> int:
    value = 0
    for a in arrays:
        value = zlib.crc32(np.asarray(a).reshape(-1).view(np.uint8).data, value)
    return value


def _variable(value: object) -> str:
    """Return what the program calls something, as seen from the line that called malt; "" if it has no name."""
    frame = sys._getframe()
    while (up := frame.f_back) is not None:
        frame = up
        if frame.f_globals.get("__name__", "").partition(".")[0] != "malt":
            for name, one in {**frame.f_globals, **frame.f_locals}.items():
                if one is value:
                    return name
    return ""
