"""``malt.load`` as each rank of a job would call it, the ranks being threads of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import malt
from malt._data.load import files
from malt._job import codec, world

Loads = Callable[..., list[Any]]


class Meeting:
    """The one collective call that loads make, among threads."""

    def __init__(self, size: int) -> None:
        self._values: list[Any] = [None] * size
        self._barrier = threading.Barrier(size)
        self.calls = 0

    def allgather(self, rank: int, value: Any) -> list[Any]:
        self._values[rank] = codec.encode(value)
        self._barrier.wait(30)
        told = [codec.decode(data) for data in self._values]
        self.calls += rank == 0
        self._barrier.wait(30)
        return told


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Return what each of n ranks loads, or the exception that it gets instead.

    An argument that is a function is called with the rank for the argument.
    """
    me = threading.local()

    def load(n: int, *paths: Any, **options: Any) -> list[Any]:
        meeting = Meeting(n)
        results: list[Any] = [None] * n

        def own(x: Any) -> Any:
            return x(me.rank) if callable(x) and not isinstance(x, type) else x

        def run(rank: int) -> None:
            me.rank = rank
            try:
                results[rank] = malt.load(*map(own, paths), **{k: own(v) for k, v in options.items()})
            except Exception as e:
                results[rank] = e

        with monkeypatch.context() as m:
            m.setattr(world, "rank", lambda: me.rank)
            m.setattr(world, "size", lambda: n)
            m.setattr(world, "allgather", lambda value, timeout: meeting.allgather(me.rank, value))
            threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), "a rank waits for others that have gone on"
        return results

    return load


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read 7 bytes at a time, so that every boundary falls everywhere."""
    monkeypatch.setattr(files, "BLOCK", 7)


def checked(results: list[Any]) -> list[Any]:
    """Return the results, none of which may be an exception."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def mine(n_rows: int, rank: int, size: int, order: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return the rows that are a rank's, written down from what `malt.shard` documents."""
    if order == "stride":
        return np.arange(n_rows)[rank::size]
    if order == "block":
        return np.arange(n_rows)[rank * n_rows // size : (rank + 1) * n_rows // size]
    return np.random.RandomState(seed).permutation(n_rows)[rank::size]
