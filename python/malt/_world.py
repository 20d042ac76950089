"""The job: who this process is, and the calls that all ranks make together."""

from __future__ import annotations

import atexit
import operator
import os
import sys
import threading
from traceback import format_exception
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TypeVar, get_args, overload

import numpy as np
import numpy.typing as npt

from . import _codec, _foreign, _frames, _identity, _launchers, _lib
from ._errors import StateError
from ._guide import lines
from ._options import choose, joined, misspelt, spelled
from .typing import Op, Transport

__all__ = ["allgather", "allreduce", "barrier", "broadcast", "generation", "init", "local_rank", "rank", "size"]

OPS: tuple[Op, ...] = get_args(Op)

T = TypeVar("T")


class Tensor(Protocol):
    """An array, whichever library's."""

    @property
    def shape(self) -> Any:
        """Its axes."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Value = TypeVar("Value", bound="int | float | complex | np.generic | Tensor")

_joining = threading.RLock()
_me: _identity.Who | None = None  # set once this process, or the one it was forked from, has joined


def init(
    *,
    rank: int | None = None,
    size: int | None = None,
    store: str | None = None,
    token: str | None = None,
    timeout: float | None = None,
    transport: Transport | None = None,
) -> None:
    """Join the job. Whatever needs the job calls this by itself.

    Each argument replaces what ``malt run`` put into the environment. What
    torchrun, Open MPI's and MPICH's mpirun, Slurm's srun and indexed jobs of
    Kubernetes put there is understood as well. Without any of these, the job is
    this process alone. Afterwards
    the ``MALT_`` variables are gone from ``os.environ``, so that processes which
    this one starts do not take themselves for the rank; `rank` and `size` answer
    there too.

    Parameters
    ----------
    rank, size : int, optional
        This rank's number, from 0, and how many there are.
    store, token : str, optional
        Where the ranks meet, and the secret that they share.
    timeout : float, optional
        Seconds that any wait may take if it is not told otherwise; 300 by default.
    transport : {"auto", "shm", "tcp", "inmem"}, optional
        How updates travel.

    Raises
    ------
    StateError
        Joined already and told something new; another live process is this rank;
        or this is a helper process of a rank.
    TimeoutError
        Some ranks have not arrived; the message names them.
    """
    told: dict[str, object] = {
        name: value
        for name, value in {
            "rank": rank,
            "size": size,
            "store": store,
            "token": token,
            "timeout": None if timeout is None else _lib.seconds(timeout),
            "transport": transport,
        }.items()
        if value is not None
    }
    _lib.alive()  # a forked child may find the lock held by a thread that it has not got
    with _joining:
        if _me is not None:
            if told:
                raise StateError(
                    lines(
                        f"this process already is rank {_me.rank} of {_me.size}",
                        do="Call malt.init before all else of malt, or without arguments.",
                    )
                )
            return
        _join(told)


def _join(told: dict[str, object]) -> None:
    global _me, _previous_hook
    mark = _identity.inside()
    if mark is not None and not told:
        raise StateError(
            lines(
                f"this process was started by rank {mark.rank} of {mark.size} and is not a rank itself",
                "only malt.rank() and malt.size() work in it",
                "Use malt in the rank, or start ranks with malt run or malt.run.",
            )
        )
    if not told.keys() & {"rank", "size"}:
        started = _launchers.described(os.environ)
        if started is not None:
            told = {**_launchers.joining(started, os.environ, _job_timeout(told.get("timeout"))), **told}
    launched = bool(told.keys() - {"timeout", "transport"}) or any(
        os.environ.get(name) for name in _identity.RANK_VARIABLES
    )
    options = joined(**{name: str(value) for name, value in told.items()})
    _lib.init(options, _job_timeout(told.get("timeout")))
    _me = _identity.Who(*_lib.who())
    if launched or _me.size > 1:
        _identity.used_up(_me)
    _previous_hook, sys.excepthook = sys.excepthook, _excepthook
    if "MALT_REPORT" in os.environ:
        _report_to_launcher()


def _job_timeout(told: object) -> float:
    """Return the seconds that a timeout of None will mean."""
    text = os.environ.get("MALT_TIMEOUT") if told is None else str(told)
    try:
        limit = float(text or _lib.DEFAULT_TIMEOUT)
    except ValueError:
        limit = -1.0
    # What is no time the library refuses, with a sentence.
    return limit if limit >= 0 else _lib.DEFAULT_TIMEOUT


def _report_to_launcher() -> None:
    """Let ``malt run`` know who failed first and, at the end, where the time went."""
    global _reporter
    from ._report import reporter

    def book(counters: _lib.Counters) -> None:
        totals, edges = counters
        for kind in ("scatter", "wait", "fold"):
            reporter.spent(kind, totals[f"{kind}_seconds"])
        for edge in edges:
            reporter.waited_for(edge["rank"], edge["waited"])

    def finish() -> None:
        _lib.book_all()
        reporter.spent("collective", _lib.JOB.collective_seconds)
        reporter.finish()

    _reporter = reporter
    _lib.book_with(book)
    atexit.register(finish)  # runs before the library's own, which was registered earlier


_reporter: Any = None
_previous_hook = sys.__excepthook__


def _excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
    """Report an uncaught exception, then tell the other ranks that this one is ending.

    In that order: the launcher takes the first failure for the cause, and the others
    fail as soon as they are told. A launcher that can show the traceback gets it as data,
    because it shows once what several ranks see; otherwise the rank prints it.
    """
    told = False
    try:
        with _frames.hidden(value):
            sys.stderr.flush()
            if _reporter is not None and _frames.plain(_previous_hook):
                told = _reporter.failed(value, "".join(format_exception(kind, value, value.__traceback__)))
            if not told:
                _previous_hook(kind, value, value.__traceback__)
    finally:
        sys.stderr.flush()
        if _reporter is not None and not told:
            _reporter.failed(value)
        _lib.abort(value)


def _who() -> _identity.Who:
    """Return who this process is or belongs to; joins if that is not known."""
    if _me is not None:
        return _me
    mark = _identity.inside()
    if mark is not None:
        return mark
    init()
    assert _me is not None
    return _me


def _see_joined() -> None:
    """Join, as `init` does without arguments, unless that has been done: what every call begins with costs little."""
    if _me is None:
        init()


def rank() -> int:
    """Return this rank's number, 0 … size-1.

    In a process that a rank has started, also by forking, it is that rank's.

    Examples
    --------
    >>> malt.rank()
    0
    """
    return _who().rank


def size() -> int:
    """Return the number of ranks; 1 without a launcher.

    Examples
    --------
    >>> malt.size()
    1
    """
    return _who().size


def local_rank() -> int:
    """Return this rank's number among those of its machine, from 0, for example to choose a GPU.

    Raises
    ------
    StateError
        A rank had not joined the job when it started this process.
    """
    who = _who()
    if who.local_rank < 0:
        raise StateError(
            lines(
                f"this process was started by rank {who.rank} before that had joined the job",
                "it is not known which other ranks are on its machine",
                "Call malt.init() in the rank first.",
            )
        )
    return who.local_rank


def generation() -> int:
    """Return the membership number: 1, and one more each time the set of ranks changes."""
    return _who().generation


def barrier(timeout: float | None = None) -> None:
    """Wait until every rank is in its barrier. Collective.

    What was scattered before can be gathered after it, except in ``notify-ack``:
    there gather before the barrier.

    Parameters
    ----------
    timeout : float, optional
        Seconds; None is the job's.

    Raises
    ------
    TimeoutError, PeerError, StateError, MismatchError
        The time is up; a rank is dead; has ended; is in another collective call.
    """
    _see_joined()
    _lib.barrier(timeout)


@overload
def broadcast(value: None = None, root: int = 0, *, timeout: float | None = None) -> Any: ...
@overload
def broadcast(value: T | None, root: int = 0, *, timeout: float | None = None) -> T: ...
def broadcast(value: Any = None, root: int = 0, *, timeout: float | None = None) -> Any:
    """Return root's value on every rank. Collective.

    Parameters
    ----------
    value : None, number, str, bytes, array, tensor, or lists, tuples and dicts of them
        What root sends; on other ranks it is not looked at. Nothing is pickled. Arrays of
        PyTorch and JAX come back as such, of the same dtype; a CUDA tensor on the
        receiver's current device, or without one on the CPU. A ``Parameter``
        becomes a tensor. Other arrays with ``__array__`` come back as numpy's.
    root : int
        The rank whose value counts.
    timeout : float, optional
        Seconds; None is the job's.

    Returns
    -------
    object
        Equal to root's value, and new on every rank; arrays are writable.

    Raises
    ------
    TypeError
        At root, if the value holds anything else.
    ValueError
        If root is not a rank.

    Examples
    --------
    >>> malt.broadcast({"rate": 0.1, "layers": [784, 10]})
    {'rate': 0.1, 'layers': [784, 10]}
    """
    _see_joined()
    source = checked_rank("root", root)
    data = _codec.encode(value) if rank() == source else b""
    return _lib.broadcast(data, source, _codec.decode, timeout)


def checked_rank(name: str, value: object) -> int:
    """Return the argument ``name`` as the number of a rank."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"malt: {name}={value!r}: the number of a rank is expected") from None
    if not 0 <= number < size():
        raise ValueError(f"malt: {name}={number}: a rank from 0 to {size() - 1} is expected")
    return number


def allgather(value: T, *, timeout: float | None = None) -> list[T]:
    """Return the values of all ranks, in rank order. Collective.

    What may be sent is as for `broadcast`; the ranks' values may differ in kind
    and size.

    Examples
    --------
    >>> malt.allgather("ready")
    ['ready']
    """
    return allgather_in("malt.allgather", value, timeout)


def allgather_in(call: str, value: Any, timeout: float | None = None, given: str = "") -> list[Any]:
    """Return the values of all ranks, as a part of another collective call.

    A `MismatchError` names that call, and what it is given, which must be the same on all ranks.
    """
    _see_joined()
    return _lib.allgather(_codec.encode(value), _codec.decode, timeout, call, given)


@overload
def allreduce(value: int | np.integer[Any], op: Literal["mean"] = "mean", *, timeout: float | None = None) -> float: ...
@overload
def allreduce(value: bool, op: Literal["sum"], *, timeout: float | None = None) -> int: ...
@overload
def allreduce(
    value: npt.NDArray[np.integer[Any] | np.bool_], op: Literal["mean"] = "mean", *, timeout: float | None = None
) -> npt.NDArray[np.float64]: ...
@overload  # numpy adds up small integers in larger ones
def allreduce(
    value: npt.NDArray[np.integer[Any] | np.bool_] | np.integer[Any] | np.bool_,
    op: Literal["sum"],
    *,
    timeout: float | None = None,
) -> Any: ...
@overload
def allreduce(value: Value, op: Op = "mean", *, timeout: float | None = None) -> Value: ...
@spelled
def allreduce(value: Any, op: Op = "mean", *, timeout: float | None = None, **unknown: NoReturn) -> Any:
    """Combine a number or array over all ranks; the same bits on every rank. Collective.

    Parameters
    ----------
    value : bool, int, float, complex, array or tensor
        One per rank, arrays of one shape and dtype. It is not changed. Tensors of two
        bytes an element are combined in float32.
    op : {"mean", "sum", "min", "max"}
        Ranks are combined in rank order. Whole numbers stay whole, except in a mean.
    timeout : float, optional
        Seconds; None is the job's.

    Returns
    -------
    number, array or tensor
        As ``value`` is, on its device: a bool for the min (all) or max (any) of bools.

    Raises
    ------
    ValueError, TypeError
        An unknown op; a value that cannot be combined.
    MismatchError
        The ranks' arrays differ in shape or dtype.

    Examples
    --------
    >>> malt.allreduce(3, "sum")
    3
    >>> malt.allreduce(False, "max")            # has any rank had enough?
    False
    """
    if unknown:
        raise misspelt(unknown, allreduce)
    choose("op", op, OPS)
    if not isinstance(value, np.ndarray | np.generic) and _foreign.known(value):
        array, back = _foreign.as_numpy(value, "value")
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype != str(array.dtype):  # it travels as another, of which other ranks may have an array
            allgather_in("malt.allreduce", None, timeout, f'{dtype}{list(array.shape)}, "{op}"')
        return back(allreduce(array, op, timeout=timeout))
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufc":
            raise TypeError(f"malt: allreduce of an array of dtype {value.dtype}: numbers are expected")
        _see_joined()
        if value.dtype in _lib.DTYPES:
            combined = np.array(value, order="C", subok=False)
            _lib.allreduce(combined, op, timeout)
            return combined
    elif not isinstance(value, bool | int | float | complex | np.number | np.bool_):
        raise TypeError(
            f"malt: allreduce of a {type(value).__qualname__}: a number or an array is expected: try np.asarray(value)"
        )
    kind = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "a number"
    return _combine(allgather_in("malt.allreduce", value, timeout, f'{kind}, "{op}"'), op)


def _combine(values: list[Any], op: str) -> Any:
    """Fold what the ranks passed, of one shape and dtype, in rank order."""
    if all(isinstance(v, int) for v in values) and op != "mean":  # Python's own: exact, however large
        if op == "sum":
            return sum(values)
        return min(values) if op == "min" else max(values)
    stacked = np.stack([np.asarray(v) for v in values])
    if op == "mean":
        result = np.mean(stacked, axis=0)
    elif op == "sum":
        result = np.sum(stacked, axis=0)
    else:
        result = (np.minimum if op == "min" else np.maximum).reduce(stacked)
    if isinstance(values[0], np.ndarray):
        return np.asarray(result)
    return result if any(isinstance(v, np.generic) for v in values) else result.item()
