"""Memory for what a load keeps: asked for before it is taken, because the kernel ends a process that takes too much."""

from __future__ import annotations

import os

from ..._ranks.room import free_memory

STEP = 4 << 20
"""Bytes of text after which a load looks again how much memory it has taken."""

RESERVE = 64 << 20
"""Bytes that stay free: for what is read in a step, by this rank and by others."""


def see_memory(nbytes: int) -> None:
    """Raise MemoryError if so many bytes are not free."""
    free = free_memory()
    if free is not None and free < nbytes + RESERVE:
        needed = (nbytes + RESERVE) / (1 << 20)
        raise MemoryError(f"{needed:,.0f} MiB are needed to go on, {free / (1 << 20):,.0f} MiB are free")


class Growing:
    """What a load keeps of a text, whose size is known only at its end.

    Parameters
    ----------
    copied : bool
        Whether it is put together in new memory at the end, so that there are two of it for a moment.
    """

    def __init__(self, copied: bool) -> None:
        self._copied = copied
        self._unseen = self._kept = 0
        self._before = _resident()

    def grew(self, text: int) -> None:
        """Raise MemoryError if there is no room to go on after so many bytes of text."""
        self._unseen += text
        if self._unseen >= STEP:
            self._unseen = 0
            kept = max(0, _resident() - self._before)
            step = max(0, kept - self._kept)
            self._kept = kept
            see_memory(step + (kept if self._copied else kept // 4))  # a list grows by up to a quarter at once


def _resident() -> int:
    """Return the bytes of this process that are in memory and not of files."""
    with open("/proc/self/statm") as file:
        _, resident, shared, *_ = map(int, file.read().split())
    return (resident - shared) * os.sysconf("SC_PAGESIZE")
