"""The parts of all ranks of a job, cut in one process: for tests of ``malt.shard``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import malt
from malt._job import world

Shards = Callable[..., list[Any]]


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Shards:
    """Return what each of n ranks gets; data that are called are made anew for each."""

    def cut(n: int, *data: Any, **options: Any) -> list[Any]:
        parts = []
        for rank in range(n):
            monkeypatch.setattr(world, "rank", lambda rank=rank: rank)
            monkeypatch.setattr(world, "size", lambda: n)
            parts.append(malt.shard(*(x() if callable(x) else x for x in data), **options))
        return parts

    return cut
