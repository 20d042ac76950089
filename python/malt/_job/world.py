"""The job: who this process is, and the calls that all ranks make together."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TextIO, TypeVar, get_args, overload

import numpy as np
import numpy.typing as npt

from .. import _frames, _launchers, _lib
from .._errors import Error, StateError
from .._guide import lines
from .._options import choose, joined, misspelt, spelled, whole
from ..typing import OnDeath, Op, Transport
from . import codec, foreign, identity

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
_me: identity.Who | None = None  # set once this process, or the one it was forked from, has joined
_on_death = "stop"


def init(
    *,
    rank: int | None = None,
    size: int | None = None,
    store: str | None = None,
    token: str | None = None,
    timeout: float | None = None,
    transport: Transport | None = None,
    on_death: OnDeath | None = None,
    min_ranks: int | None = None,
) -> None:
    """Join the job. You rarely need this: the first call that needs the job joins it.

    By default everything comes from the environment, as set by ``malt run``, torchrun, the
    mpirun of Open MPI or MPICH, Slurm's srun, or an indexed job of Kubernetes. Without
    these, the job is this process alone. Each argument overrides the environment.

    Afterwards the ``MALT_`` variables are gone from ``os.environ``, so that processes that
    this one starts do not join as the same rank. In such processes `rank` and `size` still
    return the values of this rank.

    Parameters
    ----------
    rank, size : int, optional
        This rank's number, from 0, and the number of ranks.
    store, token : str, optional
        Where the ranks meet (``host:port`` of rank 0, or ``local:`` and hexadecimal digits
        on one machine), and the secret that they share.
    timeout : float, optional
        Longest wait in seconds, for calls without ``timeout=``; 300 by default.
    transport : {"auto", "shm", "tcp", "inmem"}, optional
        How updates reach other ranks: see ``MALT_TRANSPORT``.
    on_death : {"stop", "continue", "replace"}, optional
        What a rank's death does to the job: it ends, which is the default, or the others go on
        without that rank, or also let a new process take its place. All ranks must say the same;
        ``malt run --on-death`` does.
    min_ranks : int, optional
        With ``on_death="continue"``: with fewer ranks than that the job ends all the same; 1 by
        default.

    Raises
    ------
    StateError
        The process has joined already, and an argument was given; another live process is
        this rank; or this is a child process of a rank.
    TimeoutError
        Some ranks have not arrived; the message names them.
    MismatchError
        The ranks differ in ``on_death`` or ``min_ranks``.
    UnsupportedError
        ``on_death="continue"`` under torchrun, which ends all ranks at the first death, or on several
        machines with ``transport="tcp"``.
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
            "on_death": on_death,
            "min_ranks": min_ranks,
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
                        do="Call malt.init before any other function of malt, or without arguments.",
                    )
                )
            return
        _join(told)


def _join(told: dict[str, object]) -> None:
    global _me, _on_death, _previous_hook
    mark = identity.inside()
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
            on_death = told.get("on_death") or os.environ.get("MALT_ON_DEATH")
            told = {**_launchers.joining(started, os.environ, _job_timeout(told.get("timeout")), on_death), **told}
    launched = bool(told.keys() - {"timeout", "transport", "on_death", "min_ranks"}) or any(
        os.environ.get(name) for name in identity.RANK_VARIABLES
    )
    options = joined(**{name: str(value) for name, value in told.items()})
    _lib.init(options, _job_timeout(told.get("timeout")))
    _me = identity.Who(*_lib.who())
    _on_death = str(told.get("on_death", os.environ.get("MALT_ON_DEATH", "stop")))  # a word that the library knows
    if launched or _me.size > 1:
        identity.used_up(_me)
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
    from .._ranks import report

    reporter = report.reporter()

    def book(counters: _lib.Counters) -> None:
        totals, edges = counters
        for kind in ("scatter", "wait", "fold"):
            reporter.spent(kind, totals[f"{kind}_seconds"])
        reporter.spent("syncs", totals["scatters"])
        for edge in edges:
            reporter.waited_for(edge["rank"], edge["waited"])
            reporter.age = max(reporter.age, edge["age_max"])

    def finish() -> None:
        before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        if before is not None:  # a Ctrl-C finds this process at its end, and keeps nobody from hearing of its time
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _lib.book_all()
        waits = 0.0
        with contextlib.suppress(Error):  # a call of another thread goes on
            job = _lib.counters()
            book(job)
            waits = job[0]["wait_seconds"]
        reporter.spent("meeting", waits)
        reporter.spent("collective", max(0.0, _lib.JOB.collective_seconds - waits))
        reporter.deaths, reporter.longest = _lib.JOB.deaths, _lib.JOB.longest
        reporter.finish()
        if before is not None:
            signal.signal(signal.SIGINT, before)

    global _previous_warning
    if warnings.showwarning.__module__ in _PLAIN:
        _previous_warning, warnings.showwarning = warnings.showwarning, _show_warning
    _reporter = reporter
    reporter.joined()
    _lib.book_with(book)
    atexit.register(finish)  # runs before the library's own, which was registered earlier


def made(name: str, facts: Mapping[str, str]) -> None:
    """Let ``malt run`` know of a vector or segment: what it is, or is from now on."""
    if _reporter is not None:
        _reporter.made(name, facts)


_reporter: Any = None
_previous_hook = sys.__excepthook__
_previous_warning = warnings.showwarning
_PLAIN = ("warnings", "_py_warnings")
"""Modules of which `showwarning` does no more than print."""


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Leave a warning to the launcher, which shows once what several ranks see; where it cannot, print it."""
    if file is None and sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr.flush()
        text = warnings.formatwarning(message, category, filename, lineno, line)
        same = getattr(message, "same", "")
        if _reporter.warned(text, f"{filename}:{lineno}: {same}" if same else text):
            return
    _previous_warning(message, category, filename, lineno, file, line)


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
                told = _reporter.failed(value, shown=True)
            if not told:
                _previous_hook(kind, value, value.__traceback__)
    finally:
        sys.stderr.flush()
        if _reporter is not None and not told:
            _reporter.failed(value)
        _lib.abort(value)


def _who() -> identity.Who:
    """Return who this process is or belongs to; joins if that is not known."""
    if _me is not None:
        return _me
    mark = identity.inside()
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

    A process that a rank has started or forked gets the number of that rank.

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
    """Return this rank's number among the ranks of its machine, from 0, for example to choose a GPU.

    Raises
    ------
    StateError
        This process was started by a rank that had not joined the job yet.
    """
    who = _who()
    if who.local_rank < 0:
        raise StateError(
            lines(
                f"this process was started by rank {who.rank} before that rank had joined the job",
                "it is not known which other ranks are on its machine",
                "Call malt.init() in the rank first.",
            )
        )
    return who.local_rank


def generation() -> int:
    """Return the membership number: 1, and one more each time the set of ranks changes."""
    who = _who()
    return who.generation if who is not _me or _lib.forked() else _lib.generation()


def alive() -> list[int]:
    """Return the ranks that take part, in ascending order.

    These are all ranks, unless some have died and the job goes on without them
    (``--on-death continue``). The list changes in calls of MALT alone, together with
    `generation`, so two looks without a call between them agree.

    Examples
    --------
    >>> malt.alive()
    [0]
    """
    _see_joined()
    return _lib.living()


def survives() -> bool:
    """Tell whether the others go on when one of several ranks dies."""
    return size() > 1 and _on_death != "stop"


def replaces() -> bool:
    """Return whether new processes take the place of ranks that die."""
    return size() > 1 and _on_death == "replace"


def first() -> bool:
    """Tell whether this is the lowest rank that takes part: for what one rank does, such as printing and saving.

    Examples
    --------
    >>> malt.first()
    True
    """
    return alive()[0] == rank()


def confirm(timeout: float | None = None) -> None:
    """Return when this rank is known to take part still. Call it before results are written.

    Where the ranks are on one machine, each that can ask takes part. Where they are on several, it asks the other
    machines: when it was called, nobody had gone on without this rank.

    Parameters
    ----------
    timeout : float, optional
        In seconds; by default the timeout of the job.

    Raises
    ------
    ExpelledError
        The others have gone on without this rank, or too few machines can be reached until ``timeout``: they may have.
    TimeoutError, PeerError, StateError
    """
    _see_joined()
    _lib.confirm(timeout)


def expel(rank: int) -> None:
    """Kill a rank that hangs (SIGKILL), so that the others can go on without it.

    MALT never does this by itself: a rank that is stopped or slow is waited for, until the
    timeout.

    Parameters
    ----------
    rank : int
        Another rank of this machine.

    Raises
    ------
    ValueError
        That is no other rank.
    UnsupportedError
        It is on another machine.
    HostError
        Its process cannot be killed, or has ended.
    """
    _see_joined()
    _lib.expel(checked_rank("rank", rank))


def mark(text: str) -> None:
    """Show where the program is, such as ``epoch 3``, to people who watch this rank with ``malt top``.

    It is an event, too (``malt run --events``). It costs some 0.5 µs, and other ranks do not hear of it.

    Parameters
    ----------
    text : str
        What to show; 88 bytes of it are kept.

    Examples
    --------
    >>> malt.mark("epoch 3")
    """
    _see_joined()
    _lib.mark(text)


def log(**values: float) -> None:
    """Show numbers, such as the loss, to people who watch this rank with ``malt top``.

    ``malt top`` has a column for the one that is called ``loss``; all are events (``malt run --events``).
    With ``examples``, how many this rank has used up to now, ``malt trace`` shows the loss
    over the examples of all ranks.

    Parameters
    ----------
    **values : float
        Numbers by their names.

    Examples
    --------
    >>> malt.log(loss=0.14, examples=3200)
    """
    _see_joined()
    for name, value in sorted(values.items(), key=lambda item: item[0] == "loss"):  # it comes after its examples
        _lib.log(name, _number(name, value))


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # a large integer
    except (TypeError, ValueError):
        raise TypeError(lines(f"{name}={value!r}", "expected a number")) from None


def barrier(timeout: float | None = None) -> None:
    """Wait until every rank has called `barrier`. Collective.

    Updates that were scattered before the barrier can be gathered after it, except in
    ``notify-ack``: there, gather before the barrier.

    Parameters
    ----------
    timeout : float, optional
        In seconds; by default the timeout of the job.

    Raises
    ------
    TimeoutError, PeerError, StateError, MismatchError
        The time is up; a rank is dead; a rank has ended; a rank makes another collective
        call.
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
    value : None, number, str, bytes, array, tensor, or lists, tuples and dicts of these
        The value that root sends; other ranks' values are ignored. Pickle is not used.
        Arrays of PyTorch and JAX arrive as such, with the same dtype; a CUDA tensor arrives
        on the receiver's current device, or on the CPU if it has none. A ``Parameter``
        arrives as a tensor, other arrays with ``__array__`` as numpy arrays.
    root : int
        The rank whose value is sent.
    timeout : float, optional
        In seconds; by default the timeout of the job.

    Returns
    -------
    object
        A copy of root's value on every rank, root included; arrays are writable.

    Raises
    ------
    TypeError
        At root: the value contains something else.
    ValueError
        ``root`` is not a rank.
    TimeoutError, PeerError, StateError, MismatchError
        As for `barrier`.

    Examples
    --------
    >>> malt.broadcast({"rate": 0.1, "layers": [784, 10]})
    {'rate': 0.1, 'layers': [784, 10]}
    """
    _see_joined()
    source = checked_rank("root", root)
    data = codec.encode(value) if rank() == source else b""
    return _lib.broadcast(data, source, codec.decode, timeout)


def checked_rank(name: str, value: object) -> int:
    """Return the argument ``name`` as the number of a rank."""
    most = size() - 1
    return whole(name, value, 0, most, "expected the number of a rank", f"expected a rank from 0 to {most}")


def allgather(value: T, *, timeout: float | None = None) -> list[T]:
    """Return the values of all ranks that take part (`alive`), in rank order. Collective.

    Parameters
    ----------
    value
        Anything that `broadcast` takes. Values of ranks may differ in type and size.
    timeout : float, optional
        In seconds; by default the timeout of the job.

    Raises
    ------
    TypeError, TimeoutError, PeerError, StateError, MismatchError
        As for `broadcast`.

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
    return _lib.allgather(codec.encode(value), codec.decode, timeout, call, given)


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
    """Combine a number or array over all ranks; every rank gets the same bits. Collective.

    Parameters
    ----------
    value : bool, int, float, complex, array or tensor
        This rank's value, which is not changed. Arrays must have the same shape and dtype
        on all ranks. float16 and bfloat16 tensors are combined in float32.
    op : {"mean", "sum", "min", "max"}
        How to combine, element by element, in rank order. Integers stay integers, except
        in a mean.
    timeout : float, optional
        In seconds; by default the timeout of the job.

    Returns
    -------
    number, array or tensor
        Of the type of ``value``, and on its device. The min (all) or max (any) of bools is
        a bool.

    Raises
    ------
    ValueError, TypeError
        There is no such op; the value cannot be combined.
    OverflowError
        A sum of integers does not fit into their dtype.
    MismatchError
        The ranks' arrays differ in shape or dtype, or a rank makes another collective call.
    TimeoutError, PeerError, StateError
        As for `barrier`.

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
    if not isinstance(value, np.ndarray | np.generic) and foreign.known(value):
        array, back = foreign.as_numpy(value, "value")
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype != str(array.dtype):  # it travels as another, of which other ranks may have an array
            allgather_in("malt.allreduce", None, timeout, f'{dtype}{list(array.shape)}, "{op}"')
        return back(allreduce(array, op, timeout=timeout))
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufc":
            raise TypeError(lines(f"allreduce of an array of dtype {value.dtype}", "expected numbers"))
        _see_joined()
        if value.dtype in _lib.DTYPES:
            combined = np.array(value, order="C", subok=False)
            _lib.allreduce(combined, op, timeout)
            return combined
    elif not isinstance(value, bool | int | float | complex | np.number | np.bool_):
        mapping = "{key: malt.allreduce(x) for key, x in value.items()}"
        raise TypeError(
            lines(
                f"allreduce of a {type(value).__qualname__}",
                "expected a number or an array",
                f"Try {mapping if isinstance(value, dict) else 'np.asarray(value)'}.",
            )
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
        large = result.dtype.kind in "iu" and np.abs(stacked.astype(np.float64)).sum() >= 2.0**62
        if large and not np.array_equal(result, np.sum(stacked.astype(object), axis=0)):
            raise OverflowError(
                lines(
                    f"allreduce: the sum does not fit into {result.dtype}",
                    f"the ranks' values range from {stacked.min()} to {stacked.max()}",
                    "Convert to float64, or sum smaller numbers.",
                )
            )
    else:
        result = (np.minimum if op == "min" else np.maximum).reduce(stacked)
    if isinstance(values[0], np.ndarray):
        return np.asarray(result)
    return result if any(isinstance(v, np.generic) for v in values) else result.item()
