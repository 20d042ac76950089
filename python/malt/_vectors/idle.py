"""Finds a vector that the training loop never changes."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence

import numpy as np

from .. import _lib
from .._frames import variable
from .._guide import lines
from .arrays import Array


class Idle:
    """Finds a vector that is exchanged but never changed.

    In its first exchanges, two of them by default, it compares the memory with what it was before, by
    a checksum, and does so too with the arrays that the vector was made of: a loop may change one of these by mistake.
    """

    LARGEST = 1 << 28  # bytes; beyond, the checksum would take as long as the sync
    UNCHANGED = (
        "the array of {} has not changed between two syncs, so nothing is learnt",
        "`w = w - g` makes a new array, and leaves the array of the vector as it was",
        "Write `w -= g`, or `v.array[:] = w - g`.",
    )

    def __init__(self, arrays: Sequence[Array], given: object, looks: int = 2, warning: Sequence[str] = UNCHANGED):
        self._most = looks
        self._warning = warning
        self._last = [_fingerprint(a) for a in arrays]
        self._looks = 0
        originals = given if isinstance(given, list | tuple) else [given]
        self._given = [
            (i, "array" if a is given else f"arrays[{i}]", weakref.ref(a), _fingerprint(a))
            for i, a in enumerate(originals)
            if isinstance(a, np.ndarray)
        ]

    def look(self, vector: object, arrays: Sequence[Array], name: str, synced: bool) -> bool:
        """Tell, before an exchange, whether there is no more to look for.

        Outside of `sync` a vector may well be left as it is, as by a rank that only averages; there
        it counts only whether an array that the vector was made of has changed.
        """
        now = [_fingerprint(a) for a in arrays]
        for i, own, reference, before in self._given:
            original = reference()
            if original is not None and now[i] == self._last[i] and _fingerprint(original) != before:
                _lib.warn(_of_original(variable(original), f"{variable(vector) or 'v'}.{own}", name))
                return True
        if now != self._last or not any(a.size for a in arrays):
            return True
        self._looks += 1
        if self._looks < self._most:
            return False
        if synced:
            what, where, do = (line.format(name) for line in self._warning)
            _lib.warn(lines(what, where, do, topic="unchanged"))
        return True

    def after_sync(self, arrays: Sequence[Array]) -> None:
        self._last = [_fingerprint(a) for a in arrays]


def _of_original(variable: str, own: str, name: str) -> str:
    return lines(
        f"{f'`{variable}`' if variable else 'the array that it was made of'} changes, and the array of {name} does "
        "not, so nothing is learnt",
        f"malt.Vector copies the values that it is given: `{own}` is another array",
        f"Write `{variable or 'w'} = {own}` after making the vector, and change that.",
        topic="unchanged",
    )


def _fingerprint(a: Array) -> int:
    return zlib.crc32(np.asarray(a).reshape(-1).view(np.uint8).data)
