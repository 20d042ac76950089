"""A rank of MALT, through its public Python API."""

from __future__ import annotations

import os
import signal
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import malt

from . import malt_net
from .clock import average, idle, loop, staged, writing
from .malt_memory import held
from .serve import Seconds, Timed, serve

SLOTS = 3
"""Updates after which each slot of an edge has been used, and its memory is there."""


class Malt:
    """One rank."""

    def __init__(self) -> None:
        self.rank = malt.rank()
        self._vectors: list[malt.Vector] = []

    def barrier(self) -> None:
        malt.barrier()

    def drop(self) -> None:
        while self._vectors:
            self._vectors.pop().close()

    def prepare(self, op: str, size: int, **options: Any) -> Timed:
        made: Timed = getattr(self, "_" + op.replace("-", "_"))(max(1, size // 4), **options)
        return made

    def _vector(self, count: int, **options: Any) -> malt.Vector:
        self._vectors.append(malt.Vector(np.ones(count, np.float32), **options))
        return self._vectors[-1]

    def _sync(self, count: int) -> Timed:
        return self._sync_graph(count, "all")

    def _write_sync(self, count: int) -> Timed:
        return self._write_graph(count, "all", "bsp")

    def _write_graph(self, count: int, graph: str, consistency: malt.typing.Consistency) -> Timed:
        """All ranks write, send and fold."""
        v = self._vector(count, graph=graph, consistency=consistency)
        return loop(writing(v.array, v.sync))

    def _skew(self, count: int, late: float) -> Timed:
        v = self._vector(count, consistency="bsp")
        return average("skew", v.array, v.sync, late)

    def _sync_graph(self, count: int, graph: str) -> Timed:
        spec = malt.Graph(graph, malt.size(), allow_disconnected=True)  # as halton-paper is at powers of two
        return loop(self._vector(count, graph=spec, consistency="bsp").sync)

    def _allreduce(self, count: int) -> Timed:
        return loop(self._vector(count, consistency="bsp").allreduce)

    def _scatter(self, count: int) -> Timed:
        """Rank 0 to all others; nobody gathers."""
        v = self._vector(count, consistency="async")
        return loop(v.scatter) if self.rank == 0 else idle

    def _gather(self, count: int, fold: Any = "mean") -> Seconds:
        """Rank 0 folds one new update of each other rank."""
        v = self._vector(count, consistency="async", fold=fold)

        def stage() -> None:
            malt.barrier()  # rank 0 has folded the last one: nobody writes while it does
            if self.rank:
                v.scatter(to=[0])
            malt.barrier()

        return staged(stage, v.gather if self.rank == 0 else None)

    def _gather_own_fold(self, count: int) -> Timed:
        return self._gather(count, fold=_mean)

    def _numpy_fold(self, count: int) -> Timed:
        """The same gather, of which only the user's expression counts: it reads what another core has just written."""
        taken: list[float] = []

        def mean(own: Any, updates: Any) -> Any:
            start = time.perf_counter()
            result = _mean(own, updates)
            taken.append(time.perf_counter() - start)
            return result

        gather = self._gather(count, fold=mean)

        def timed(calls: int) -> float | None:
            taken.clear()
            return None if gather(calls) is None else sum(taken) / calls

        return timed

    def _gather_idle(self, count: int) -> Timed:
        return loop(self._vector(count, consistency="async").gather)

    def _sync_idle(self, count: int) -> Timed:
        v = self._vector(count, consistency="bsp")

        def timed(calls: int) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                v.sync(every=1 << 60)
            return (time.perf_counter() - start) / calls

        return timed

    def _put_seen(self, count: int, wait: float | None = None) -> Timed:
        """Half of there and back between two ranks that poll, or each wait so many seconds."""
        v = self._vector(count, consistency="async", fold="replace")
        first, gather = self.rank == 0, v.gather if wait is None else partial(v.gather, wait=wait)

        def half() -> None:
            if first:
                v.scatter()
            while not gather():
                pass
            if not first:
                v.scatter()

        return _halved(loop(half))

    def _put_awaited(self, count: int) -> Timed:
        return self._put_seen(count, wait=1)

    def _stream(self, count: int) -> Timed:
        one_way = malt.Graph([[1], []], allow_disconnected=True)
        return malt_net.stream(self._vector(count, graph=one_way, consistency="notify-ack:3", fold="replace"))

    def _cpu(self, count: int) -> Timed:
        return malt_net.cpu(self._vector(count, consistency="async"))

    def _lands(self, count: int, does: str) -> Timed:
        return malt_net.lands(self._vector(count, consistency="async"), does)

    def _step(self, count: int, stopped: bool) -> Timed:
        return malt_net.step(self._vector(count, consistency="async"), stopped)

    def _busy(self, count: int, begun: bool) -> Timed:
        return malt_net.busy(self._vector(count, consistency="bsp"), begun)

    def _stopped(self, count: int) -> Timed:
        """Processor time that rank 0 takes in a second of waiting for rank 1, which is stopped."""
        v = self._vector(count, consistency="bsp")
        stopped = malt.allgather(os.getpid())[1]

        def timed(calls: int) -> float | None:
            if self.rank:
                if self.rank == 1:
                    os.kill(stopped, signal.SIGSTOP)
                v.sync()
                return None
            while Path(f"/proc/{stopped}/stat").read_text().rpartition(") ")[2][0] != "T":
                os.sched_yield()
            used, began = time.process_time(), time.perf_counter()
            try:
                v.sync(timeout=1)
            except malt.TimeoutError:
                used, waited = time.process_time() - used, time.perf_counter() - began
            os.kill(stopped, signal.SIGCONT)
            v.gather()
            return used / waited

        return timed

    def _sparse(self, count: int, density: float) -> Timed:
        """Scatter by rank 0 and gather by rank 1, seconds per byte sent."""
        sparse = density < 1
        v = self._vector(count, consistency="async", sparse="model" if sparse else False)
        rows = np.flatnonzero(np.random.default_rng(1).random(count) < density) if sparse else None
        sent = 0

        def scatter() -> None:
            nonlocal sent
            sent += v.scatter(rows)

        def change() -> None:
            v.array[rows] += np.float32(1)
            malt.barrier()

        def wait() -> None:
            malt.barrier()

        def timed(calls: int) -> float:
            nonlocal sent
            total, sent = 0.0, 0
            for _ in range(calls):
                own = staged(change if self.rank == 0 else wait, scatter if self.rank == 0 else None)(1)
                malt.barrier()
                own = staged(lambda: None, v.gather)(1) if self.rank == 1 else own
                total += malt.allreduce(own or 0.0, "sum")
            return total / float(malt.allreduce(sent, "max"))

        timed(SLOTS)
        return timed

    def _memory(self, count: int, graph: str, consistency: malt.typing.Consistency) -> Timed:
        """Bytes of memory that the job holds for the vector after some steps, per rank."""

        def timed(calls: int) -> float:
            before = held()
            malt.barrier()
            with malt.Vector(np.ones(count, np.float32), graph=malt.Graph(graph), consistency=consistency) as v:
                for _ in range(4):
                    v.sync()
                    malt.barrier()
                more = held() - before
                malt.barrier()
            return float(malt.allreduce(more, "sum")) / malt.size()

        return timed


def _halved(timed: Seconds) -> Timed:
    def halved(calls: int) -> float | None:
        taken = timed(calls)
        return None if taken is None else taken / 2

    return halved


def _mean(own: Any, updates: Any) -> Any:
    for update in updates:
        own += update.array
    own *= np.float32(1 / (len(updates) + 1))
    return own


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that the vectors' values never change
    serve(Malt())
