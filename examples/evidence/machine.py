"""Ranks that die, sleep or count memory and bytes: ``learnt.py`` runs them.

PYTHONPATH=examples malt run -n 4 examples/evidence/machine.py memory '{"runs": {"all": {}}}' found.json
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import malt
import texts
from evidence.job import be

Found = dict[str, list[float]]


def death(dies: bool, pieces: int = 1000, pace: float = 0.02) -> dict[str, float]:
    """Deal pieces that take equal time; the last rank may die at its 30th. Return seconds of all and of one sync."""
    v = malt.Vector(1000)
    deal, longest = malt.deal(range(pieces)), 0.0
    begun = time.perf_counter()
    for _ in deal:
        time.sleep(pace)
        if dies and malt.rank() == malt.size() - 1 and deal.position == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        v.array += 1
        came = time.perf_counter()
        v.sync()
        longest = max(longest, time.perf_counter() - came)
    return {"span": malt.allreduce(time.perf_counter() - begun, "max"), "longest": malt.allreduce(longest, "max")}


def proportional() -> int:
    """Return the bytes of this process, of which shared pages count in part."""
    found = re.search(r"^Pss: *(\d+) kB", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def memory(runs: dict[str, dict[str, Any]], values: int = 4_000_000, steps: int = 5) -> dict[str, float]:
    """Return for each vector the memory of all ranks, in copies of the array for a rank."""
    found = {}
    for name, options in runs.items():
        malt.barrier()
        before = proportional()
        malt.barrier()  # until all have looked
        v = malt.Vector(values, dtype=np.float32, **options)
        for _ in range(steps):
            v.array += 1
            v.sync()
        malt.barrier()
        found[name] = float(malt.allreduce((proportional() - before) / v.array.nbytes))
        v.close()
    return found


def sleeper(messages: int = 64, values: int = 4_000_000, seconds: float = 8) -> dict[str, float]:
    """Have rank 1 send to rank 0, which sleeps; return its processor seconds, and the bytes that were sent."""
    graph = malt.Graph([[], [0]], allow_disconnected=True)
    v = malt.Vector(values, dtype=np.float32, graph=graph, consistency="async")
    malt.barrier()
    used, end = time.process_time(), time.monotonic() + seconds
    if malt.rank() == 1:
        for _ in range(messages):
            v.scatter()
            time.sleep(seconds / messages / 2)  # until it has arrived: a newer one would take its place
    time.sleep(max(0, end - time.monotonic()))
    used = time.process_time() - used
    malt.barrier()
    return {"used": used, "sent": malt.allreduce(float(v.stats().sent_bytes), "sum")}


def carried() -> int:
    """Return the bytes that this host has sent over its cable."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[9]) for line in file if line.split()[0] == "eth0:")


def loaded(options: dict[str, Any], steps: int, pace: float = 0, turns: int = 5) -> list[float]:
    """Return the bytes a second that the host with the fewest sends, while all ranks sync all the time."""
    found = []
    v = malt.Vector(1_000_000, dtype=np.float32, **options)
    for _ in range(turns + 1):
        malt.barrier()
        sent, begun = carried(), time.perf_counter()
        for _ in range(steps):
            v.array += 1
            v.sync()
            time.sleep(pace)  # the processors are for all ranks
        rate = (carried() - sent) / (time.perf_counter() - begun)
        found.append(float(malt.allreduce(rate, "min")))
    return found[1:]


def moved(runs: dict[str, dict[str, Any]], texts_each: int = 100, steps: int = 10, pace: float = 0.1) -> Found:
    """Return for each vector the bytes that all ranks send in a step, which changes the words of some texts."""
    read, _ = malt.shard(*texts.read())
    size = 1 + int(malt.allreduce(max(int(words.max()) for words, _ in read), "max"))
    found: Found = {}
    for name, options in runs.items():
        v = malt.Vector(size, dtype=np.float32, **options)
        serves = options["graph"] == "shards:1"
        for step in range(steps):
            malt.barrier()
            words = np.concatenate([words for words, _ in read[step * texts_each : (step + 1) * texts_each]])
            if serves:
                v.array[words if malt.rank() else 0] += 1  # rank 0 only serves
                v.sync()
            else:
                v.array[words] += 1
                v.sync(rows=np.unique(words))
            time.sleep(pace)  # until it has arrived: a newer one would take its place
        found[name] = [float(malt.allreduce(float(v.stats().sent_bytes), "sum")) / steps]
        v.close()
    return found


if __name__ == "__main__":
    be(death, memory, sleeper, loaded, moved)
