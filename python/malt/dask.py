"""Ranks on a Dask cluster: ``malt.dask.run(fn, n)``."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from . import _engines
from ._guide import lines
from ._options import misspelt, spelled

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

    It works like `malt.run`, but on the workers of a Dask cluster: each rank is a process
    that a task starts, and each task takes one thread of a worker.

    Parameters
    ----------
    fn, n, args, kwargs, timeout
        As for `malt.run`. Dask's workers must have at least n threads in all.
    client : distributed.Client, optional
        The client of the cluster; by default the one that was made last.

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
        As for `malt.run`.

    Examples
    --------
    >>> malt.dask.run(train, 4, args=("data.csv",))  # doctest: +SKIP
    """
    if unknown:
        raise misspelt(unknown, run)
    asked = _engines.Asked("dask", "distributed", "dask[distributed]", fn, n, args, kwargs, timeout)
    distributed = asked.module
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise ValueError(
                lines("dask.run needs a cluster", do="Make a dask.distributed.Client before it.")
            ) from None
    places = _places(client, asked.size)
    job = uuid.uuid4().hex
    store = _submit(client, places[0], _listen, job).result(asked.timeout)
    works = [_submit(client, place, _work, job, rank, asked.call, store) for rank, place in enumerate(places)]
    try:
        return asked.results(works, lambda left, rest: _wait(distributed, left, rest), _fate)
    finally:
        client.cancel(works, force=True)


def _places(client: Any, size: int) -> list[str]:
    """Return the worker of each rank."""
    threads: Mapping[str, int] = client.nthreads()
    places = [address for address, count in threads.items() for _ in range(count)]
    if len(places) < size:
        raise ValueError(
            lines(
                f"{size} ranks need as many threads in Dask's workers",
                f"these have {len(places)}",
                "Ask for fewer, or start more workers.",
            )
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


def _wait(distributed: Any, works: list[Any], rest: float | None) -> set[Any]:
    try:
        done: set[Any] = distributed.wait(works, timeout=rest, return_when="FIRST_COMPLETED").done
        return done
    except distributed.TimeoutError:
        return set()


def _fate(work: Any, rank: int) -> _engines.Fate:
    if work.status == "finished":
        fate: _engines.Fate = work.result()
        return fate
    return _engines.Fate(rank, -signal.SIGKILL, None, None, f"its worker is lost: {work.exception()}")
