"""What ``malt.ray`` and ``malt.dask`` have in common: ranks that the workers of an engine start.

The caller packs a function and hands it to one seat for each rank, each in a worker of
the engine. Rank 0's seat makes the socket where all meet. A seat starts its rank as
``malt.run`` does, as a process of its own: so it lives and ends as any rank, several of them
may be in one worker, and nothing of the function stays behind in the worker.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from . import _errors
from ._guide import lines
from ._lib import seconds
from ._need import need
from ._ranks.addresses import listen
from ._ranks.launch import Job, meeting, program_environment
from ._ranks.output import Display
from ._ranks.rank import Outcome, first_failure
from ._ranks.run import checked, packed_call, payload, raise_failure, returned, start, unpacked
from ._ranks.scratch import scratch

FAREWELL = 2.0
"""Seconds in which, after a failure, other ranks may say that they have failed before."""

LOOK = 0.5
"""Seconds between two looks whether a rank is still wanted."""


class Call(NamedTuple):
    """What all ranks of a job are to do."""

    data: bytes
    """See `_run.payload`."""
    size: int
    token: str


class Fate(NamedTuple):
    """What has become of one rank."""

    rank: int
    status: int | None
    failure: dict[str, Any] | None
    """See `Outcome`."""
    data: bytes | None
    """What it has sent back; see `_run.Result`."""
    words: str
    """Its last, if it failed."""


class Asked:
    """What somebody asks ``malt.ray.run`` or ``malt.dask.run`` for.

    Parameters
    ----------
    engine : str
        ``"ray"`` or ``"dask"``.
    module, package : str
        What is imported of it, and what pip installs that as.
    fn, n, args, kwargs, timeout
        As of `malt.run`. They are checked, and the call is packed for the ranks of a new job.
    """

    def __init__(
        self,
        engine: str,
        module: str,
        package: str,
        fn: Callable[..., Any],
        n: int,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> None:
        self.size = checked(fn, n)
        self.timeout = None if timeout is None else seconds(timeout)
        self.module: Any = need(module, f"malt.{engine}.run", package=package)
        need("cloudpickle", f"malt.{engine}.run")
        data, _ = packed_call((fn, tuple(args), dict(kwargs or {})), fn)
        self.call = Call(payload(data, None, None), self.size, os.urandom(16).hex())
        self._until = None if self.timeout is None else time.monotonic() + self.timeout

    def results(
        self,
        works: list[Any],
        wait: Callable[[list[Any], float | None], Collection[Any]],
        fate: Callable[[Any, int], Fate],
    ) -> list[Any]:
        """Return what the ranks returned, in their order, or raise what the first to fail did.

        Soon after a failure no more ranks are waited for.

        Parameters
        ----------
        works : list
            What the engine has for each rank's work.
        wait : callable
            Called with some of them and seconds, or None; returns the works that have ended,
            at least one unless the time is up.
        fate : callable
            Called with one of them that has ended and its rank; returns what became of that.
        """
        fates: list[Fate] = []
        left, until, failed = works, self._until, False
        while left and (done := wait(left, None if until is None else max(0.0, until - time.monotonic()))):
            fates += [fate(one, rank) for rank, one in enumerate(works) if one in left and one in done]
            left = [one for one in left if one not in done]
            if not failed and any(one.status for one in fates):
                failed, until = True, time.monotonic() + FAREWELL
        if left and not failed:
            late = ", ".join(str(rank) for rank, one in enumerate(works) if one in left)
            raise _errors.TimeoutError(
                lines(f"run did not end within {self.timeout:g} s", f"rank {late} had not returned and was stopped")
            )
        return _results(fates, self.size)


class Seat:
    """One rank's place in a worker."""

    def __init__(self) -> None:
        self._listening: list[socket.socket] = []

    def listen(self) -> str:
        """Be where all ranks meet; returns where that is."""
        self._listening, store = listen()
        return store

    def work(
        self,
        rank: int,
        call: Call,
        store: str,
        show: Callable[[int, bytes], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> Fate:
        """Run a rank to its end.

        Parameters
        ----------
        rank, call, store
            Which one, what it does, and where all meet.
        show : callable
            Called with (1 for stdout or 2 for stderr, lines) for what it prints.
        wanted : callable, optional
            Asked now and then: False ends the rank.
        """
        env = program_environment(1) | meeting(call.size, store, call.token) | {"MALT_RANK": str(rank)}
        env["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        pass_fds = []
        if self._listening:
            pass_fds = [one.fileno() for one in self._listening]
            env["MALT_STORE_FD"] = ",".join(map(str, pass_fds))
        display = Display(call.size, show)
        with ExitStack() as opened:
            file = opened.enter_context(scratch())
            file.write(call.data)
            file.flush()
            with Job(display) as job:
                result = start(job, file.fileno(), env, pass_fds, rank)
                opened.callback(os.close, result.fd)
                for one in self._listening:
                    one.close()
                while not job.wait(time.monotonic() + LOOK):
                    if not wanted():
                        job.stop()
            data = result.data()
        (done,) = job.ranks
        failed = done.failed is not None
        words = display.last_words(rank, again=True).decode(errors="replace") if failed else ""
        return Fate(rank, done.status, done.failure, data, words)


def _results(fates: Sequence[Fate], size: int) -> list[Any]:
    """Return what the ranks returned, in their order, or raise what the first to fail did.

    Parameters
    ----------
    fates : sequence of Fate
        In the order in which the ranks have ended; some may be missing if one has failed.
    size : int
        How many ranks there are.
    """
    outcomes = []
    for at, fate in enumerate(fates):
        outcome = Outcome(fate.rank)
        outcome.status, outcome.failure = fate.status, fate.failure
        if fate.status or fate.failure is not None:
            outcome.failed = float(at)
        outcomes.append(outcome)
    failed = first_failure(outcomes)
    by_rank = {fate.rank: fate for fate in fates}
    if failed is not None:
        raise_failure(failed, unpacked(by_rank[failed.number].data), by_rank[failed.number].words)
    return [returned(rank, unpacked(by_rank[rank].data)) for rank in range(size)]
