"""What the ranks of ``malt bench`` do.

Rank 0 writes one line of JSON per result to standard output. All times are in
seconds per call, as the slowest rank sees it, in the fastest of some rounds:
what the machine can do, not what it was disturbed by.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import malt
from malt import _lib

ROUNDS = 5
ROUND = 0.06
"""Seconds that a round takes, about."""

LARGE = 64 << 20
"""Bytes of the arrays by which memory is measured: beyond any cache, for most machines."""

LARGE_UPDATE = 4 << 20
"""Bytes of an update whose cost is that of its bytes."""

SPARSE = 4096, 64
"""Rows of the sparse vector, and their elements: 1 MiB."""

ROOM = 8
"""Copies of a payload that a rank may hold: its arrays, and the slots of its boxes."""

Operation = Callable[[], Any]


def main() -> None:
    """Measure the payload sizes, in bytes, that are given as arguments."""
    warnings.simplefilter("ignore")  # that the vectors' values never change
    if sys.argv[1:] == ["network"]:
        _tell(kind="network", **_network())
        return
    if sys.argv[1] == "fabric":
        _fabric([int(word) for word in sys.argv[2:]])
        return
    sizes = [int(word) for word in sys.argv[1:]]
    state = json.loads(_lib.inspect("doctor"))
    _tell(kind="machine", ranks=malt.size(), load=os.getloadavg()[0], **state)
    room = state["memory"]["free"] // (2 * malt.size())  # no more than half of what is free
    large = min(LARGE, room // 4)
    _tell(kind="memory", bytes=large, alone=_alone(large), together=per_call(_copy(large)))
    _tell(kind="sparse", **_sparse())
    _tell(
        kind="latency",
        seen=_seen(4),
        barrier=per_call(malt.barrier),
        allreduce=per_call(lambda: malt.allreduce(1.0)),
    )
    for size in sizes:
        if size * ROOM > room:
            _tell(kind="skipped", bytes=size, needs=size * ROOM * malt.size())
        else:
            _tell(kind="size", bytes=size, **_size(size))


def _tell(**result: Any) -> None:
    if malt.rank() == 0:
        print(json.dumps(result), flush=True)


def _size(size: int) -> dict[str, float]:
    """Measure everything for one payload."""
    times = {"copy": per_call(_copy(size))}
    count = size // 4
    with malt.Vector(np.zeros(count, np.float32), consistency="async") as v:
        times["scatter"] = per_call(v.scatter)
    with malt.Vector(np.ones(count, np.float32), consistency="bsp") as v:
        times["sync"] = per_call(v.sync)
    with malt.Vector(np.ones(count, np.float32), consistency="bsp") as v:
        times["allreduce"] = per_call(v.allreduce)
    with malt.Vector(np.ones(count, np.float32), graph="ring", consistency="bsp") as v:
        times["copied"] = per_call(v.sync)
    times["seen"] = _seen(size)
    return times


def _network() -> dict[str, float]:
    """Measure what a small update and a byte cost that go to another host, by connections of this machine.

    ``update`` and ``byte`` are processor time of both ends: in the program and in the kernel.
    """
    small, large = (_used(size) for size in (4, LARGE_UPDATE))
    return {"seen": _seen(4), "update": small, "byte": max(0.0, large - small) / LARGE_UPDATE}


def _fabric(sizes: list[int]) -> None:
    """Measure updates to another host by what MALT_FABRIC names, and tell whether they go that way."""
    card = json.loads(_lib.inspect("doctor"))["fabric"]
    card["hardware"] = card["hardware"] and not card["device"].startswith("rxe")  # that is the kernel's
    for size in sizes:
        before = _placed()
        with malt.Vector(np.zeros(size // 4, np.float32), consistency="async") as v:
            scatter = per_call(v.scatter)
        _tell(kind="fabric", bytes=size, scatter=scatter, seen=_seen(size), placed=_placed() - before, **card)


def _placed() -> int:
    """Return how many bytes this rank has sent by RDMA."""
    with malt.Vector(np.zeros(1), consistency="async") as v:
        return sum(edge.rdma_bytes for edge in v.stats().edges)


def _used(size: int) -> float:
    """Return the processor time of an update that each of two ranks sends to the other and folds."""
    with malt.Vector(np.ones(size // 4, np.float32), graph="ring", consistency="bsp") as v:
        calls = max(ROUNDS, int(ROUND / per_call(v.sync)))
        best = float("inf")
        for _ in range(ROUNDS):
            malt.barrier()
            before = time.process_time()
            for _ in range(calls):
                v.sync()
            best = min(best, float(malt.allreduce((time.process_time() - before) / calls)) / malt.size())
    return best


def _sparse() -> dict[str, float]:
    """Measure a sync of one row in a hundred, named or to be found, and of all of them."""
    rows, width = SPARSE
    mine = np.arange(malt.rank(), rows, 100)
    with malt.Vector(np.zeros(SPARSE, np.float32), sparse="model") as v:

        def found() -> None:
            v.array[mine] += 1
            v.sync()

        times = {"named": per_call(lambda: v.sync(rows=mine)), "found": per_call(found)}
    with malt.Vector(np.zeros(SPARSE, np.float32)) as v:
        return {"bytes": rows * width * 4, **times, "whole": per_call(v.sync)}


def per_call(operation: Operation) -> float:
    """Return the time of an operation that all ranks do at the same time, equally often."""
    operation()  # first touch
    calls = 1
    while (taken := calls * _round(operation, calls)) < ROUND / 2:
        calls *= max(2, min(10, int(ROUND / taken)))
    return min(_round(operation, calls) for _ in range(ROUNDS))


def _round(operation: Operation, calls: int) -> float:
    malt.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        operation()
    return float(malt.allreduce((time.perf_counter() - start) / calls, "max"))


def _copy(size: int) -> Operation:
    """Return a pass that reads so many bytes and writes as many: the measure of all other times.

    It changes the sign, since a plain copy is libc's memcpy, which on some
    processors is ten times slower for one size than for the next.
    """
    source, target = (np.frombuffer(mmap.mmap(-1, size), np.float32) for _ in range(2))
    source[:] = 1.0
    return lambda: np.negative(source, out=target)


def _alone(size: int) -> float:
    """Measure a copy by rank 0 while the others wait."""
    best = float("inf")
    if malt.rank() == 0:
        copy = _copy(size)
        for _ in range(ROUNDS + 1):  # the first one touches the memory
            start = time.perf_counter()
            copy()
            best = min(best, time.perf_counter() - start)
    return float(malt.allreduce(best, "min"))


def _seen(size: int) -> float:
    """Measure from a scatter to the gather that has it, one way, between ranks 0 and 1."""
    v = malt.Vector(np.zeros(max(1, size // 4), np.float32), consistency="async", fold="replace")
    with v:
        best = float("inf")
        for _ in range(ROUNDS):
            malt.barrier()
            if malt.rank() < 2:
                best = min(best, _there_and_back(v, 1 - malt.rank()) / 2)
            malt.barrier()
    return float(malt.allreduce(best, "min"))


def _there_and_back(v: malt.Vector, peer: int) -> float:
    """Return the median time in which an update is answered by another."""
    first = malt.rank() == 0
    times = []
    end = time.perf_counter() + ROUND
    going = True
    while going:
        start = time.perf_counter()
        if first:
            going = start < end
            v.array[0] = going  # the other one cannot know when to stop
            v.scatter(to=[peer])
        while not v.gather():
            pass
        if not first:
            going = bool(v.array[0])
            v.scatter(to=[peer])
        times.append(time.perf_counter() - start)
    return float(np.median(times))


if __name__ == "__main__":
    main()
