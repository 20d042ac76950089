"""How far apart the ranks' values are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._job import world
from .arrays import Array


def _square(a: Array) -> float:
    """Return the sum of the squares: in pieces, so that no copy in float64 is made."""
    return sum(float(np.square(a[i : i + 65536], dtype=np.float64).sum()) for i in range(0, len(a), 65536))


def _same(values: Sequence[Array], timeout: float | None) -> bool:
    """Whether all ranks have the same bits."""
    import hashlib  # loads OpenSSL, which most processes do without

    known = hashlib.blake2b(digest_size=8)
    for a in values:
        known.update(a.data)
    return len(set(world.allgather(known.digest(), timeout=timeout))) == 1


def distance(values: Sequence[Array], timeout: float | None) -> float:
    """Return the distance of the ranks' values from their mean, as `Vector.distance` says; one after the other."""
    off = length = 0.0
    values = [array.reshape(-1) for array in values]
    for a in values:
        mean = world.allreduce(a, timeout=timeout)
        length += _square(mean)
        off += _square(a - mean)
    off = world.allreduce(off, timeout=timeout)
    rounded = world.size() * np.finfo(values[0].dtype).eps  # the mean may be so far off
    if off == 0 or (off <= rounded**2 * length and _same(values, timeout)):
        return 0.0
    return math.sqrt(off / length) if length else math.inf
