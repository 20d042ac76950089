"""Jobs that ``malt.deal`` hands items to, of which ranks are killed at moments that nobody chose, and their judge.

Each rank writes down, in memory that outlives it, what the loop got and how far its syncs had come. Its model is
the set of what has been learnt: a vector of flags that is folded by "max".
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from launching import LONG

ITEMS, PASSES, RANKS = 20_000, 3, 4

LATE = 200
"""Items that a rank may get while it is being killed. Then it waits for that: it is not to come to its end."""

LEARN = f"""
    import signal
    n, passes = {ITEMS}, {PASSES}
    log = np.memmap(os.environ["LOG"], np.int64, "r+", shape=({RANKS}, 3 + 2 * n * passes))[r]
    options = dict(word.split("=") for word in os.environ["DEAL"].split())
    last = dict(word.split(":") for word in os.environ["LAST"].split()).get(str(r))
    every, mode = int(options.pop("every")), options.pop("consistency")
    if "seed" in options:
        options["seed"] = int(options["seed"])
    v = malt.Vector((passes, n), fold="max", consistency=mode)
    deal = malt.deal(range(n), epochs=passes, **options)
    count = 0
    for i in deal:
        if str(count) == last:
            signal.pause()
        log[3 + 2 * count : 5 + 2 * count] = deal.epoch, i
        count += 1
        log[0] = count
        v.array[deal.epoch, i] = 1
        log[2] = count                       # a sync begins
        folded = v.sync(every=every)
        if folded is None or mode == "bsp" and folded < len(v.senders):
            log[2] = log[1]                  # it was none, or a rank was away
        else:
            log[1] = count                   # and has returned
    v.gather() if mode == "async" else None
    v.allreduce("max")
    print(*malt.alive())
    print(*[f"{{e}},{{i}}" for e, i in zip(*np.nonzero(v.array == 0))])
"""


Start = Callable[[Mapping[str, str]], AbstractContextManager[Callable[[], Mapping[int, str]]]]
"""Starts the ranks, with this in their environment; what it returns waits for their ends, and returns what the ranks
that were not killed have said."""


class Deaths:
    """A job of which two ranks are killed, and what it has left."""

    def __init__(self, seed: int, folder: Path, options: str, start: Start, hosts: int = 1) -> None:
        draw = random.Random(seed)
        self.dead = draw.sample(range(RANKS), 2)
        self.lived = [rank for rank in range(RANKS) if rank not in self.dead]
        moments = [(draw.randrange(1, PASSES * ITEMS // RANKS - LATE), rank) for rank in self.dead]
        self.every = int(dict(word.split("=") for word in options.split())["every"])
        a_host = RANKS // hosts
        home = {rank // a_host for rank in self.dead}
        self.unheard = max(moments)[1] if len(home) == 1 and len(self.dead) == a_host else None
        """The rank that died last of a host, whose last sync in lock-step may have reached none that lives."""
        path = folder / "log"
        with path.open("wb") as file:
            file.truncate(RANKS * (3 + 2 * ITEMS * PASSES) * 8)
        self.log: Any = np.memmap(path, np.int64, "r", shape=(RANKS, 3 + 2 * ITEMS * PASSES))
        last = " ".join(f"{rank}:{moment + LATE}" for moment, rank in moments)
        with start({"MALT_ON_DEATH": "continue", "LOG": str(path), "DEAL": options, "LAST": last}) as finish:
            for moment, rank in sorted(moments):
                self._kill(rank, moment)
            said = {rank: text.splitlines() for rank, text in finish().items()}
        assert {rank: lines[0] for rank, lines in said.items()} == dict.fromkeys(
            self.lived, " ".join(map(str, self.lived))
        )
        missing = [pair.split(",") for lines in said.values() for pair in " ".join(lines[1:]).split()]
        self.missing = {(int(e), int(i)) for e, i in missing}

    def _kill(self, rank: int, moment: int) -> None:
        """Kill a rank when its loop has got so many items, and wait for its end."""
        self._wait(rank, 1)
        process = os.pidfd_open(self._number(rank))
        try:
            self._wait(rank, moment)
            signal.pidfd_send_signal(process, signal.SIGKILL)
            over = select.poll()
            over.register(process, select.POLLIN)
            assert over.poll(LONG * 1e3)
        finally:
            os.close(process)

    def _wait(self, rank: int, items: int) -> None:
        end = time.monotonic() + LONG
        while self.log[rank, 0] < items:
            assert time.monotonic() < end, f"rank {rank} has got {self.log[rank, 0]} of {items} items"
            os.sched_yield()

    def _number(self, rank: int) -> int:
        """Return the process id of a rank as it is here; on a simulated host it has another."""
        said = {f"MALT_RANK={rank}".encode(), f"LOG={self.log.filename}".encode()}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if said <= set((folder / "environ").read_bytes().split(b"\0")):
                    return int(folder.name)
        raise AssertionError(f"rank {rank} has ended")

    def got(self, rank: int) -> list[tuple[int, int]]:
        """Return what the loop of a rank got, as passes and items."""
        return [(int(e), int(i)) for e, i in self.log[rank, 3 : 3 + 2 * self.log[rank, 0]].reshape(-1, 2)]

    def counts(self, synced: list[int]) -> Any:
        """Return how often each item was handed to a rank that lives, or synced by one that does not."""
        kept = [self.got(rank) for rank in self.lived]
        kept += [self.got(rank)[:last] for rank, last in zip(self.dead, synced, strict=True)]
        return np.bincount([i for items in kept for _, i in items], minlength=ITEMS)

    def ways(self, rank: int) -> set[int]:
        """Return how much of what a dead rank got may count as synced.

        A sync that the kill has ended may have come to its end for the others, or not. Of a rank that has never
        synced only the pass in which it died is dealt again.
        """
        returned, begun = int(self.log[rank, 1]), int(self.log[rank, 2])
        if returned:
            return {returned, begun} | ({max(0, returned - self.every)} if rank == self.unheard else set())
        passes = [e for e, _ in self.got(rank)]
        return {passes.index(passes[-1]), len(passes), begun}


def judge(run: Deaths) -> None:
    ways = [sorted(run.ways(rank)) for rank in run.dead]
    outcomes = [run.counts([*last]) for last in itertools.product(*ways)]
    assert any((counts == PASSES).all() for counts in outcomes), (
        f"synced {ways} of {[run.log[rank, 0] for rank in run.dead]}: "
        f"{[(np.flatnonzero(c < PASSES)[:5], np.flatnonzero(c > PASSES)[:5]) for c in outcomes]}"
    )
    # What a rank had not synced of a pass that is over is handed out in a later one, and learnt there.
    later = {pair for rank in run.dead for pair in run.got(rank)[min(run.ways(rank)) :]}
    assert run.missing <= later, f"not in the model: {sorted(run.missing - later)[:5]}"
