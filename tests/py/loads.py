"""``malt.load`` as each rank of a job would call it, the ranks being threads of the test's process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import malt
from malt._data.load import files
from malt._job import codec, world

Loads = Callable[..., list[Any]]


class DeadError(Exception):
    """What a rank gets that has died."""


class Meeting:
    """The one collective call that loads make, among threads."""

    def __init__(self, size: int, dies: Mapping[int, int]) -> None:
        self._lives = [dies.get(rank, sys.maxsize) for rank in range(size)]  # for so many calls
        self._made = [0] * size
        self._calls: dict[int, tuple[dict[int, bytes], threading.Barrier]] = {}
        self._lock = threading.Lock()

    def allgather(self, rank: int, value: Any) -> list[Any]:
        call = self._made[rank]
        self._made[rank] += 1
        living = [other for other, calls in enumerate(self._lives) if call < calls]
        if rank not in living:
            raise DeadError
        with self._lock:
            told, barrier = self._calls.setdefault(call, ({}, threading.Barrier(len(living))))
        told[rank] = codec.encode(value)
        barrier.wait(30)
        return [codec.decode(told[other]) for other in living]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Return what each of n ranks loads, or the exception that it gets instead.

    An argument that is a function is called with the rank for the argument. ``dies`` has the ranks that
    die, each in one of its collective calls, from 0: the others go on.
    """
    me = threading.local()

    def load(n: int, *paths: Any, dies: Mapping[int, int] | None = None, **options: Any) -> list[Any]:
        meeting = Meeting(n, dies or {})
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
