"""Workers that train with parameter servers, with and without Parameter Flow, for ``flow.py``.

PYTHONPATH=examples malt sim --hosts 10 --rate 50Mbit examples/evidence/flowed.py compared \
    '{"held": "dvf:0.1", "settings": [[3.6, "", 3, ["in step", "flow"]]]}' found.json
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

import malt
from evidence.filtered import BATCH, RATE, Texts
from evidence.job import be

KEEPERS = 2
PLAIN = malt.Graph(f"shards:{KEEPERS}")

STEPS = 30
NEAR = 1.01
"""Times the loss of plain servers in step after so many steps: the loss to reach."""

Point = tuple[float, float, float]


def train(data: Texts, keepers: int, steps: int, computing: float, goal: float = 0, **options: Any) -> Point:
    """Train; return seconds of the last worker in all and in `sync`, and its loss: at the goal, or in the end for 0."""
    workers, size = malt.size() - keepers, int(data.word.max()) + 1
    v = malt.Vector(size, dtype=np.float32, fold="sum-changes", **options)
    mine = np.random.default_rng(malt.rank()).permutation(np.arange(malt.rank(), len(data.labels), malt.size()))
    kept, spent = [], 0.0
    malt.barrier()
    begun = time.perf_counter()
    for step in range(steps if malt.rank() >= keepers else 0):
        first = step % (len(mine) // BATCH) * BATCH
        push = RATE / np.sqrt(step + 1) / workers * data.gradient(v.array, mine[first : first + BATCH])
        v.array -= push.astype(np.float32)
        time.sleep(computing)
        before = time.perf_counter()
        v.sync()
        after = time.perf_counter()
        spent += after - before
        kept.append((after - begun, spent, v.array.astype(np.float64)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # servers wait here from the beginning
        malt.barrier()
    v.close()
    found = np.full(3, np.inf)
    if malt.rank() == malt.size() - 1:
        points = ((took, spent, data.loss(model)) for took, spent, model in (kept if goal else kept[-1:]))
        found[:] = next((point for point in points if point[2] <= goal or not goal), found)
    took, spent, loss = malt.broadcast(found, malt.size() - 1).tolist()
    return took, spent, loss


def flow(held: str) -> dict[str, Any]:
    """Return the options of Parameter Flow."""
    return {"graph": malt.Graph(f"shards:{KEEPERS}/2"), "sparse": "model", "filter": held}


def alone(data: Texts, steps: int = STEPS) -> tuple[float, float]:
    """Return how long plain servers in step communicate for a step that computes nothing, and the loss in the end."""
    _, spent, loss = train(data, KEEPERS, steps, 0, graph=PLAIN, consistency="ssp:0")
    return spent / steps, loss


def compared(held: str, settings: list[tuple[float, str, int, list[str]]]) -> list[dict[str, list[Point]]]:
    """Train to the loss of plain servers in step, in several settings.

    Each is how many times longer these communicate than compute, what else is sent meanwhile, the number of turns, and
    the ways that take them.
    """
    data = Texts("train")
    spent, loss = alone(data)
    ways: dict[str, dict[str, Any]] = {
        "in step": {"steps": STEPS, "graph": PLAIN, "consistency": "ssp:0"},
        "average": {"steps": STEPS, "graph": "all"},
        "plain": {"steps": 4 * STEPS, "graph": PLAIN, "consistency": "ssp:16"},
        "flow": {"steps": 2 * STEPS, **flow(held), "consistency": "ssp:0"},
        "late flow": {"steps": 4 * STEPS, **flow(held), "consistency": "ssp:16"},
        "later flow": {"steps": 4 * STEPS, **flow(f"{held}:1"), "consistency": "ssp:16"},
    }
    found: list[dict[str, list[Point]]] = []
    for ratio, load, turns, names in settings:
        found.append({name: [] for name in names})
        for name in names * turns:
            with loaded(load):
                keepers = 0 if name == "average" else KEEPERS
                point = train(data, keepers, computing=spent / ratio, goal=NEAR * loss, **ways[name])
            found[-1][name].append(point)
    return found


@contextmanager
def loaded(how: str) -> Iterator[None]:
    """Have each host send to the next one meanwhile: always if it is fixed, every other second if it is dynamic."""
    if not how:
        yield
        return
    done, hosts = threading.Event(), os.environ["MALT_SIM_ADDRESSES"].split(",")

    def send(to: tuple[str, int]) -> None:
        with socket.create_connection(to) as out:
            while not done.is_set():
                if how == "fixed" or time.monotonic() % 2 < 1:
                    out.sendall(bytes(1 << 14))
                else:
                    done.wait(0.05)

    def receive() -> None:
        with listener.accept()[0] as come:
            while come.recv(1 << 16):
                pass

    after = (malt.rank() + 1) % malt.size()
    with socket.create_server((hosts[malt.rank()], 0)) as listener, ThreadPoolExecutor() as threads:
        port = int(malt.allgather(np.array([listener.getsockname()[1]]))[after][0])
        both = threads.submit(send, (hosts[after], port)), threads.submit(receive)
        yield
        done.set()
        for one in both:
            one.result()


def shares(slacks: list[str], steps: int, turns: int, ratio: float) -> dict[str, list[float]]:
    """Return how many times longer plain servers communicate than they compute, which is so many times in step."""
    data = Texts("train")
    found: dict[str, list[float]] = {consistency: [] for consistency in slacks}
    computing = alone(data, steps)[0] / ratio
    for consistency in slacks * turns:
        spent = train(data, KEEPERS, steps, computing, graph=PLAIN, consistency=consistency)[1]
        found[consistency].append(spent / steps / computing)
    return found


def spread(held: str, turns: int, seconds: float = 10) -> dict[str, list[float]]:
    """Find how long a sum takes to the worker that gets the fewest, from servers that learn all the time."""
    data, ways = Texts("train"), {"direct": {"graph": PLAIN}, "flow": flow(held)}
    size = int(data.word.max()) + 1
    times: dict[str, list[float]] = {way: [] for way in ways}
    for way in list(ways) * turns:
        v = malt.Vector(size, dtype=np.float32, fold="sum-changes", consistency="async", **ways[way])
        malt.barrier()
        begun = time.perf_counter()
        for at in itertools.count():
            if time.perf_counter() - begun > seconds:
                break
            if malt.rank() < KEEPERS:
                first = (KEEPERS * at + malt.rank()) * BATCH % (len(data.labels) - BATCH)
                push = RATE / np.sqrt(at + 1) / KEEPERS * data.gradient(v.array, np.arange(first, first + BATCH))
                v.array -= push.astype(np.float32)
                v.sync()
            time.sleep(0.02)  # the processors are for all ranks
        malt.barrier()
        sums = sum(edge.folded_messages for edge in v.stats().edges) / KEEPERS
        took = time.perf_counter() - begun
        times[way].append(took / float(malt.allreduce(sums if malt.rank() >= KEEPERS else np.inf, "min")))
        v.close()
    return times


if __name__ == "__main__":
    be(compared, shares, spread)
