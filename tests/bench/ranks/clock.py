"""Turns an operation into something that takes its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .serve import Seconds, Timed, Times

BUSY = 0.05
"""Seconds of the work of a step, such as a backward pass on an accelerator."""


def loop(call: Callable[[], Any], counts: bool = True) -> Seconds:
    """Return what does `call` again and again, and takes the time of all of them."""

    def timed(calls: int) -> float | None:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls if counts else None

    return timed


def writing(array: Any, call: Callable[[], Any]) -> Callable[[], None]:
    """Return what writes all of an array, to the values that it has, and then does `call`."""
    nothing = array.dtype.type(0)

    def both() -> None:
        np.add(array, nothing, out=array)
        call()

    return both


def skewed(array: Any, call: Callable[[], Any], late: float) -> Callable[[int], Times]:
    """Return what notes begin and end of each call, after all of an array is written and so many seconds are over."""
    nothing = array.dtype.type(0)

    def timed(calls: int) -> Times:
        times = []
        for _ in range(calls):
            np.add(array, nothing, out=array)
            until = time.monotonic() + late
            while (begin := time.monotonic()) < until:
                pass
            call()
            times.append((begin, time.monotonic()))
        return times

    return timed


def average(op: str, array: Any, call: Callable[[], Any], late: float) -> Timed:
    """Return how a call that averages an array is timed."""
    if op == "skew":
        return skewed(array, call, late)
    return loop(writing(array, call) if op == "write-sync" else call)


def idle(calls: int) -> None:
    """Do nothing: the rank is only written to."""


def staged(stage: Callable[[], Any], call: Callable[[], Any] | None) -> Seconds:
    """Return what prepares each call outside of the time, and times `call` alone; None is for ranks that only help."""

    def timed(calls: int) -> float | None:
        total = 0.0
        for _ in range(calls):
            stage()
            if call is not None:
                start = time.perf_counter()
                call()
                total += time.perf_counter() - start
        return total / calls if call is not None else None

    return timed
