"""Memory that the ranks of a job share with the driver that kills them: whole words, each with one writer."""

from __future__ import annotations

from typing import Any

import numpy as np

KILLS, END = range(2)
"""The driver's: how many ranks it has killed; whether it is enough."""

READY, DONE, TIME, ALIVE = range(4)
"""Each rank's: it syncs; kills after which it has; when it had, first, after the last of these; who is left."""

LINE = 8
"""Words of a cache line."""


def words(file: str, ranks: int) -> tuple[Any, Any]:
    """Return the driver's words and those of the ranks."""
    page = np.memmap(file, np.int64, "r+", shape=(ranks + 1, LINE))
    return page[0], page[1:]
