"""A file that is sorted by label, cut in blocks, leaves ranks that never see a class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _lib
from ..._guide import lines
from .team import Team

FEW = 20
"""Rows up to which it is chance that they have one label."""


def warn_if_sorted(team: Team, name: str, labels: Any) -> None:
    """Warn, on the first rank, if the many rows of a rank have one label while others have another. Collective."""

    def look() -> tuple[int, float, float]:
        values = np.asarray(labels)
        if values.dtype.kind not in "biuf" or not len(values):
            return 0, np.inf, -np.inf
        return len(values), float(values.min()), float(values.max())

    told = team.share(look)
    low, high = min(a for _, a, _ in told), max(b for _, _, b in told)
    for rank, (rows, a, b) in zip(team.ranks, told, strict=True):
        if team.first and rows > FEW and a == b and low < high:
            _lib.warn(
                lines(
                    f"load: all {rows:,} rows of rank {rank} of {name} have the label {a:g}",
                    "order='stride' or order='shuffle' gives every rank some of each label",
                    "Is the file sorted by label?",
                )
            )
            return
