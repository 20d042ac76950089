"""How soon the others go on after a rank was killed, and what it costs to be able to where none is.

A job of a row begins with all its ranks. One after the other is killed, at a random moment, until one is left: so
each number of ranks gets one sample from each job. Over a network the ranks are on several hosts. There other jobs have
one host powered off, and are a sample each. Before each death all ranks are timed in the same way without one: syncs
that are under way, and those that follow, are in both times.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from malt._ranks.launch import job_environment

from .net.hosts import Hosts
from .net.systems import meet
from .numbers import quantile
from .ranks.mortal_page import ALIVE, DONE, END, KILLS, READY, TIME, words
from .rows import KB, MB, Row, Target, rows
from .systems import MORTAL_OPS, base_environment
from .table import size_text
from .team import JOIN
from .turns import Result, free, room
from .units import amount

RANKS = 8
"""Of a job when it begins."""

MODES = ("bsp", "ssp:3", "async", "notify-ack")

HOSTS = 3
"""Of a job over a network. With one of them gone the others are more than half."""

OPS = ("kill-sync", "off-sync")
"""A process is killed; a host is powered off."""

PAUSE = 0.02
"""Seconds from one kill to the next, at most."""

GO_ON = 30.0
"""Seconds after which a job that does not go on is given up."""


def cost(cores: int) -> list[Row]:
    """Rows that jobs with ``on_death=stop`` and ``continue`` run in turns, while nobody dies."""
    return [replace(row, target=Target()) for row in rows(cores) if row.op in MORTAL_OPS]


def jobs() -> list[Row]:
    """Jobs of which ranks are killed. The more memory a process has, the longer its end takes the kernel."""
    made = [_row(mode, RANKS, size) for mode in MODES for size in (KB, 64 * MB)]
    return made + [_row("bsp", 4, KB, hold) for hold in (256 * MB, 1024 * MB)]


def jobs_over_network() -> list[Row]:
    """Jobs of which ranks are killed, or a host. Those with large vectors have one rank per host."""
    return [_row(mode, n, size, op=op) for op in OPS for mode in MODES for n, size in ((6, KB), (HOSTS, 64 * MB))]


def tiny() -> tuple[list[Row], list[Row]]:
    """One small row of each mode, and one of the cost."""
    return [Row("average (sync)", "sync", 2, KB)], [_row(mode, 3, KB) for mode in MODES]


def tiny_over_network() -> list[Row]:
    """One small row of each kind of death."""
    return [_row("bsp", HOSTS, KB, op=op) for op in OPS]


def _row(mode: str, ranks: int, size: int, hold: int = 0, op: str = "kill-sync") -> Row:
    more = f", {size_text(hold)} each" if hold else ""
    options = {"consistency": mode, "hold": hold}
    return Row(f"{op.replace('-', ' -> ')}, {mode}{more}", op, ranks, size, Target(), options, "none", once=True)


def _of_the_last(row: Row) -> dict[str, Any]:
    """Return how a row is called for ranks that were the last ones of their hosts."""
    return {"title": f"{row.title}, the last of its host", "options": {**row.options, "last": True}}


def kill(row: Row, times: int, say: Callable[[Result], None], hosts: Hosts | None = None) -> None:
    """Run so many jobs of a row; say one result for each number of ranks before a kill."""
    found = {
        (n, last): Result(replace(row, ranks=n, **_of_the_last(row) if last else {}))
        for n in range(2 if row.op == "kill-sync" else row.ranks, row.ranks + 1)
        for last in ((False, True) if hosts and row.op == "kill-sync" else (False,))
    }
    if (needs := room(row) + row.ranks * row.options["hold"]) > free():
        for result in found.values():
            result.left_out["malt"] = f"would need about {needs >> 20} MB of memory, {free() >> 20} MB may be taken"
        times = 0
    for _ in range(times):
        try:
            with _Job(row, hosts) as job:
                for which, seconds, calm in job.kills():
                    found[which].samples.setdefault("malt", []).append(seconds)
                    found[which].samples.setdefault("limit", []).append(calm)
        except JobError as error:  # what the others have gone on to do counts
            for result in found.values():
                result.left_out["malt"] = str(error)
    for which in sorted(found):
        if found[which].samples or found[which].left_out:
            say(found[which])


_Found = TypeVar("_Found")


class JobError(Exception):
    """A job did not start, or did not go on."""


class _Job:
    """The processes of one job, as a context manager: leaving it ends them."""

    def __init__(self, row: Row, hosts: Hosts | None) -> None:
        self._row, self._hosts = row, hosts
        self._off: int | None = None  # the host that is
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        file = Path(self._folder.name) / "page"
        file.write_bytes(bytes(8 * 8 * (row.ranks + 1)))
        self._page, self._own = words(str(file), row.ranks)
        self._errors = (Path(self._folder.name) / "errors").open("wb+")
        command = [sys.executable, "-m", "bench.ranks.mortal_rank", str(file), "--size", str(row.size)]
        command += ["--hold", str(row.options["hold"]), "--consistency", row.options["consistency"]]
        job = meet(row.ranks, hosts.addresses) if hosts else job_environment(row.ranks)
        path = {"PYTHONPATH": base_environment()["PYTHONPATH"]}
        self._processes = {
            rank: subprocess.Popen(
                command,
                env={**base_environment(), **job, **path, "MALT_ON_DEATH": "continue", "MALT_RANK": str(rank)},
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                preexec_fn=hosts.enter[self._host(rank)] if hosts else None,
            )
            for rank in range(row.ranks)
        }

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._page[END] = 1
        if self._off is not None and self._hosts:
            self._hosts.network.apply(f"heal:h{self._off}")
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GO_ON)
            process.kill()
            process.wait()
        self._errors.close()
        self._folder.cleanup()

    def kills(self) -> Iterator[tuple[tuple[int, bool], float, float]]:
        """Kill all ranks but one, or one host, and time the others.

        Yields
        ------
        which : tuple of int and bool
            How many ranks there were; whether the one that died was the last of its host.
        seconds : float
            When the last of the others had completed a sync that began after the kill.
        calm : float
            The same just before, when nobody was killed.
        """
        self._wait("start", lambda own: own[READY] == 1, JOIN)
        while (ranks := len(self._processes)) > 1 and self._off is None:
            calm, _ = self._timed(list)
            off = self._hosts is not None and self._row.op == "off-sync"
            seconds, victims = self._timed(self._power_off if off else self._kill)
            there = {self._host(rank) for rank in self._processes}
            last = self._hosts is not None and not off and not there.issuperset(map(self._host, victims))
            yield (ranks, last), seconds, calm
            # Where all had come a sync succeeds before the death is known. After two at once no third host goes on.
            self._wait("notice it", lambda own: own[ALIVE] == len(self._processes), GO_ON)
            for process in victims.values():
                process.wait()

    def _timed(self, event: Callable[[], _Found]) -> tuple[float, _Found]:
        """Return how long after an event the last rank that lives had completed a sync, and what the event returns."""
        time.sleep(random.uniform(0, PAUSE))
        start = time.monotonic_ns()
        found = event()
        self._page[KILLS] += 1
        self._wait("go on", lambda own: own[DONE] == self._page[KILLS], GO_ON)
        return max(int(self._own[rank][TIME]) - start for rank in self._processes) * 1e-9, found

    def _kill(self) -> dict[int, subprocess.Popen[bytes]]:
        victim = random.choice(list(self._processes))
        self._processes[victim].kill()
        return {victim: self._processes.pop(victim)}

    def _power_off(self) -> dict[int, subprocess.Popen[bytes]]:
        assert self._hosts is not None
        self._off = random.randrange(HOSTS)
        self._hosts.network.apply(f"off:h{self._off}")
        return {rank: self._processes.pop(rank) for rank in list(self._processes) if self._host(rank) == self._off}

    def _host(self, rank: int) -> int:
        return rank * HOSTS // self._row.ranks

    def _wait(self, what: str, has: Callable[[Any], bool], limit: float) -> None:
        end = time.monotonic() + limit
        while not all(has(self._own[rank]) for rank in self._processes):
            ended = [rank for rank, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > end:
                self._errors.seek(0)
                said = self._errors.read()[-400:].decode(errors="replace").strip()
                raise JobError(f"did not {what}: ranks {ended} have ended; {said}")
            time.sleep(0.001)  # whoever looks more often takes a core


def markdown(results: Sequence[Result]) -> str:
    """Return the table of kills."""
    lines = ["| | ranks | size | kills | p50 | p99 | most | p50, no death | p99, no death |", "| --- " * 9 + "|"]
    for result in results:
        if values := result.samples.get("malt"):
            calm = result.samples["limit"]
            found = (max(values), quantile(calm, 0.5), quantile(calm, 0.99))
            times = (amount(x, "s") for x in (quantile(values, 0.5), quantile(values, 0.99), *found))
            cells = [result.row.title, str(result.row.ranks), size_text(result.row.size), str(len(values)), *times]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write(results: Sequence[Result], folder: Path) -> str:
    """Write the table to deaths.md, and return it."""
    text = markdown(results)
    (folder / "deaths.md").write_text(text)
    return text
