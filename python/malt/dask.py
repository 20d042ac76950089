"""Ranks on a Dask cluster: ``malt.dask.run(fn, n)``."""

from __future__ import annotations

import signal
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from . import _engines, _errors
from ._engines import FAREWELL
from ._lib import seconds
from ._need import need
from ._options import misspelt, spelled
from ._run import checked

__all__ = ["run"]

T = TypeVar("T")


@spelled
def run(
    fn: Callable[..., T],
    n: int,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    client: Any = None,
    **unknown: NoReturn,
) -> list[T]:
    """Call a function on n new ranks of a Dask cluster and return what it returns, in rank order.

    As `malt.run`, but with one task for each rank, each in a thread of a worker to itself.
    The rank is a process that the task starts.

    Parameters
    ----------
    fn, n, args, kwargs, timeout
        As of `malt.run`. Dask's workers must have n threads.
    client : distributed.Client, optional
        The cluster; by default that of the client that was made last.

    Returns
    -------
    list
        Of length n.

    Raises
    ------
    PackageError
        distributed or cloudpickle is not installed.
    ValueError
        There is no client, or the workers have fewer than n threads.
    Exception, PeerError, TimeoutError, TypeError
        As of `malt.run`.

    Examples
    --------
    >>> malt.dask.run(train, 4, args=("data.csv",))  # doctest: +SKIP
    """
    if unknown:
        raise misspelt(unknown, run)
    size = checked(fn, n)
    limit = None if timeout is None else seconds(timeout)
    distributed = need("distributed", "malt.dask.run", package="dask[distributed]")
    call = _engines.call("dask", fn, args, kwargs, size)
    until = None if limit is None else time.monotonic() + limit
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise ValueError("malt: dask.run needs a cluster: make a dask.distributed.Client before it") from None
    places = _places(client, size)
    job = uuid.uuid4().hex
    store = _submit(client, places[0], _listen, job).result(limit)
    works = [_submit(client, place, _work, job, rank, call, store) for rank, place in enumerate(places)]
    try:
        return _engines.results(_fates(distributed, works, until, timeout), size)
    finally:
        client.cancel(works, force=True)


def _places(client: Any, size: int) -> list[str]:
    """Return the worker of each rank."""
    threads: Mapping[str, int] = client.nthreads()
    places = [address for address, count in threads.items() for _ in range(count)]
    if len(places) < size:
        raise ValueError(
            f"malt: {size} ranks need as many threads of Dask's workers, which have {len(places)}: ask for fewer, or "
            "start more workers"
        )
    return places[:size]


def _submit(client: Any, worker: str, task: Callable[..., Any], *args: Any) -> Any:
    return client.submit(task, *args, workers=[worker], allow_other_workers=False, pure=False, retries=0)


_seats: dict[str, _engines.Seat] = {}
"""In a worker: rank 0's place in jobs whose ranks have not been started."""


def _listen(job: str) -> str:
    """Be the worker where all ranks of a job meet."""
    _seats[job] = _engines.Seat()
    return _seats[job].listen()


def _work(job: str, rank: int, call: _engines.Call, store: str) -> _engines.Fate:
    """Run a rank, as long as its task is wanted; what it prints is shown where the client is."""
    import distributed  # type: ignore[import-not-found,import-untyped,unused-ignore]

    worker = distributed.get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    def show(stream: int, lines: bytes) -> None:
        distributed.print(lines.decode(errors="replace"), end="", file=sys.stdout if stream == 1 else sys.stderr)

    seat = _seats.pop(job, None) if rank == 0 else None
    return (seat or _engines.Seat()).work(rank, call, store, show, wanted)


def _fates(distributed: Any, works: list[Any], until: float | None, timeout: float | None) -> list[_engines.Fate]:
    """Return what became of the ranks, in the order of their ends; soon after a failure no more are waited for."""
    fates: list[_engines.Fate] = []
    failed, left = False, list(works)
    while left:
        rest = None if until is None else max(0.0, until - time.monotonic())
        try:
            done, _ = distributed.wait(left, timeout=rest, return_when="FIRST_COMPLETED")
        except distributed.TimeoutError:
            break
        left = [one for one in left if one not in done]
        fates += [_fate(one, works.index(one)) for one in done]
        if not failed and any(fate.status for fate in fates):
            failed, until = True, time.monotonic() + FAREWELL
    if left and not failed:
        late = ", ".join(str(rank) for rank, one in enumerate(works) if one in left)
        raise _errors.TimeoutError(
            f"malt: run did not end within {timeout} s: rank {late} had not returned and was stopped"
        )
    return fates


def _fate(work: Any, rank: int) -> _engines.Fate:
    if work.status == "finished":
        fate: _engines.Fate = work.result()
        return fate
    return _engines.Fate(rank, -signal.SIGKILL, None, None, f"its worker is lost: {work.exception()}")
