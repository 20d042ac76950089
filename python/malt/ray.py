"""Ranks on a Ray cluster: ``malt.ray.run(fn, n)``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from . import _engines, _errors
from ._guide import lines
from ._lib import DEFAULT_TIMEOUT
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
    options: Mapping[str, Any] | None = None,
    **unknown: NoReturn,
) -> list[T]:
    """Call a function on n new ranks of a Ray cluster and return what it returns, in rank order.

    It works like `malt.run`, but on the nodes of a Ray cluster: each rank is a process that
    an actor of its own starts.

    Parameters
    ----------
    fn, n, args, kwargs, timeout
        As for `malt.run`.
    options : mapping, optional
        Ray's options for each actor, such as ``{"num_gpus": 1}``; by default one CPU each.

    Returns
    -------
    list
        Of length n.

    Raises
    ------
    PackageError
        Ray or cloudpickle is not installed.
    Exception, PeerError, TypeError
        As for `malt.run`.
    TimeoutError
        The time is up, or Ray could not place all actors within 300 s.

    Examples
    --------
    >>> malt.ray.run(train, 4, args=("data.csv",))  # doctest: +SKIP
    """
    if unknown:
        raise misspelt(unknown, run)
    asked = _engines.Asked("ray", "ray", "ray", fn, n, args, kwargs, timeout)
    ray = asked.module
    if not ray.is_initialized():
        ray.init()
    seat = ray.remote(_Seat).options(**{"num_cpus": 1, "max_restarts": 0, **(options or {})})
    seats = [seat.remote() for _ in range(asked.size)]
    try:
        store = _placed(ray, seats, asked.timeout)
        shared = ray.put(asked.call)
        works = [one.work.remote(rank, shared, store) for rank, one in enumerate(seats)]
        return asked.results(
            works, lambda left, rest: ray.wait(left, timeout=rest)[0], lambda work, rank: _fate(ray, work, rank)
        )
    finally:
        for one in seats:
            ray.kill(one)


class _Seat(_engines.Seat):
    """The actor."""

    def work(self, rank: int, call: _engines.Call, store: str) -> _engines.Fate:  # type: ignore[override]
        """Run a rank; what it prints Ray shows to the caller."""
        return super().work(rank, call, store, _show)


def _show(stream: int, lines: bytes) -> None:
    out = sys.stdout if stream == 1 else sys.stderr
    out.write(lines.decode(errors="replace"))
    out.flush()


def _placed(ray: Any, seats: Sequence[Any], limit: float | None) -> str:
    """Return where the ranks meet, once all actors have a place."""
    patience = DEFAULT_TIMEOUT if limit is None else limit
    first = seats[0].listen.remote()
    ready = [first, *(one.__ray_ready__.remote() for one in seats[1:])]
    done, missing = ray.wait(ready, num_returns=len(ready), timeout=patience)
    if missing:
        have = ray.cluster_resources().get("CPU", 0)
        raise _errors.TimeoutError(
            lines(
                f"Ray has placed {len(done)} of {len(seats)} actors within {patience:g} s",
                f"the cluster has {have:g} CPUs",
                'Ask for fewer ranks, or pass options={"num_cpus": 0.5}.',
            )
        )
    store: str = ray.get(first)
    return store


def _fate(ray: Any, work: Any, rank: int) -> _engines.Fate:
    try:
        fate: _engines.Fate = ray.get(work)
        return fate
    except ray.exceptions.RayActorError as error:
        return _engines.Fate(rank, -signal.SIGKILL, None, None, f"its actor has died: {error}")
