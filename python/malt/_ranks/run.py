"""``malt.run``: a function on new ranks."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Literal, NoReturn, TypeVar, overload

from .. import _errors, _lib
from .._guide import lines
from .._options import choose, misspelt, spelled, whole
from . import child
from .launch import Job, job_environment
from .output import Display
from .pickles import MAIN, packed
from .rank import Outcome
from .room import MOST, see_room
from .scratch import scratch

T = TypeVar("T")

HERE = ("stop", "continue")
"""What a rank's death can do to ranks that `malt run` has not started."""

ELSEWHERE = "is for malt run", "only malt run starts a new process in the place of a dead rank"
"""What is said of ``replace``."""


@overload
def run(
    fn: Callable[..., T],
    n: int,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    *,
    on_death: Literal["stop"] | None = None,
) -> list[T]: ...


@overload
def run(
    fn: Callable[..., T],
    n: int,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    *,
    on_death: Literal["continue"],
) -> list[T | _errors.PeerError]: ...


@spelled
def run(
    fn: Callable[..., Any],
    n: int,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    *,
    on_death: Literal["stop", "continue"] | None = None,
    **unknown: NoReturn,
) -> list[Any]:
    """Call a function on n new ranks and return what it returns, in rank order.

    The ranks are new processes and form their own job; the calling process is not a rank.
    In the function, `rank`, `Vector` and the rest of MALT work as under ``malt run``.

    Parameters
    ----------
    fn : callable
        A function of an importable module or of ``__main__``. With cloudpickle installed,
        any function, such as a lambda or one defined in a notebook.
    n : int
        Number of ranks.
    args, kwargs : sequence and mapping, optional
        Arguments, the same on every rank.
    timeout : float, optional
        Limit of the whole call, in seconds; by default there is none. (Each wait inside
        the ranks has the timeout of the job, ``MALT_TIMEOUT``.)
    on_death : {"stop", "continue"}, optional
        What a rank's death does, as ``malt run --on-death``; by default what ``MALT_ON_DEATH``
        says, or else ``"stop"``.

    Returns
    -------
    list
        The n return values, in rank order. With ``on_death="continue"``, the place of a rank that
        was killed has the `PeerError` that says so.

    Raises
    ------
    Exception
        The exception of the rank that failed first, with that rank's traceback as a
        note. The other ranks are stopped.
    PeerError
        A rank was killed, and the others could not go on, or one ended without returning;
        ``.rank`` says which.
    TimeoutError
        The time is up; the ranks have been stopped.
    TypeError, ValueError
        The function or its arguments cannot be sent to another process; ``n`` is not a
        possible number of ranks.
    UnsupportedError
        Only ``malt run --on-death replace`` can start a new process in the place of a dead rank.
    OutOfMemoryError, HostError
        The machine has no memory, or its limits no room, for so many ranks.

    Notes
    -----
    Output of the ranks is shown with the rank in front of each line. Each rank gets its
    share of the cores for its BLAS threads, as with ``malt run``. Function, arguments and
    results are pickled.

    With cloudpickle, a function of ``__main__`` is sent by value. Without it, the ranks
    import the script again, as multiprocessing does, so put the code that starts the work
    under ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import math
    >>> malt.run(math.sqrt, 2, args=(16.0,))
    [4.0, 4.0]
    """
    if unknown:
        raise misspelt(unknown, run)
    if child.importing_main:
        raise RuntimeError(
            lines(
                "malt.run was called while a rank imports the script, which would never end",
                do='Start the work under if __name__ == "__main__":, or pip install cloudpickle.',
            )
        )
    size = checked(fn, n)
    check_on_death(on_death)
    see_room(size, more=1)
    limit = None if timeout is None else time.monotonic() + _lib.seconds(timeout)
    with scratch() as file:
        _write(file, fn, tuple(args), dict(kwargs or {}))
        return _call(file.fileno(), size, limit, timeout, on_death)


def check_on_death(told: str | None) -> None:
    """Refuse what a rank's death cannot do here; None: what ``MALT_ON_DEATH`` says."""
    name = "on_death"
    if told is None:
        name, told = "MALT_ON_DEATH", os.environ.get("MALT_ON_DEATH") or "stop"
    if told == "replace":
        what, where = ELSEWHERE
        do = "Take continue here, or start a script with malt run --on-death replace."
        raise _errors.UnsupportedError(lines(f"{name}={told!r} {what}", where, do))
    choose(name, told, HERE)


def checked(fn: object, n: object) -> int:
    """Return how many ranks are to call a function, or say what is wrong with either."""
    if not callable(fn):
        raise TypeError(lines(f"run of {fn!r}", "expected a function, and its arguments in args="))
    most = f"expected at least one rank; a job has at most {MOST}"
    return whole("n", n, 1, MOST, "expected a number of ranks", most)


# ---------------------------------------------------------------- to the ranks


def _write(file: IO[bytes], fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Write what `child.main` reads."""
    data, main = packed_call((fn, args, kwargs), fn)
    file.write(payload(data, main, [p or os.getcwd() for p in sys.path]))
    file.flush()


def payload(data: bytes, main: tuple[str, str] | None, path: list[str] | None) -> bytes:
    """Return what `child.main` reads: a call, what to import before, and where modules are if not where they are."""
    ready = pickle.dumps({"path": path, "argv": sys.argv, "main": main})
    return len(ready).to_bytes(8, "little") + ready + data


def packed_call(call: Any, fn: Any) -> tuple[bytes, tuple[str, str] | None]:
    """Return the pickle of a call, and the script or module to be imported for it."""
    name = getattr(fn, "__qualname__", repr(fn))
    try:
        data, names_main = packed(call)
    except TypeError as error:
        advice = "" if "pip install" in str(error) else "Pass what it needs in args=."
        raise TypeError(lines(f"{name} or its arguments cannot be sent to the ranks", str(error), advice)) from None
    main = _main() if names_main else None
    if names_main and main is None:
        raise TypeError(
            lines(
                f"{name} or its arguments cannot be sent to the ranks",
                "it is defined in __main__, which is not a file",
                "Define it in a module, or pip install cloudpickle.",
            )
        )
    return data, main


def _main() -> tuple[str, str] | None:
    """Return how to import ``__main__`` again; None where it is not a file."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return None if spec.name == "__main__" else ("module", spec.name)
    path = getattr(main, "__file__", None)
    return ("path", os.path.abspath(path)) if path and os.path.exists(path) else None


# ------------------------------------------------------------------ the ranks


class Result:
    """What comes back from a rank: 8 bytes of length, then a pickle."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._data = bytearray()
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what there is now; False at the end, and where there is nothing."""
        try:
            piece = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return False
        self._data += piece
        return bool(piece)

    def data(self) -> bytes | None:
        """Return the pickle; None if it has not come whole."""
        while self.read():  # what the rank has written just before its end
            pass
        if len(self._data) < 8 or len(self._data) < 8 + int.from_bytes(self._data[:8], "little"):
            return None
        return bytes(memoryview(self._data)[8:])


def unpacked(data: bytes | None) -> tuple[bool, Any] | None:
    """Return what `Result.data` holds: (True, value) or (False, failure); None for None."""
    if data is None:
        return None
    # A class of the caller's script has this module in a rank that imported it.
    sys.modules.setdefault(MAIN, sys.modules["__main__"])
    message: tuple[bool, Any] = pickle.loads(data)
    return message


def _call(call: int, size: int, limit: float | None, timeout: float | None, on_death: str | None) -> list[Any]:
    display = Display(size, _show)
    env = job_environment(size, on_death)
    results: list[Result] = []
    try:
        with Job(display) as job:
            results.extend(start(job, call, {**env, "MALT_RANK": rank}) for rank in map(str, range(size)))
            try:
                in_time = job.wait(limit)
            except BaseException:  # Ctrl-C above all
                job.stop()
                job.wait()
                raise
            if not in_time:
                job.stop()
                job.wait()
        messages = [unpacked(result.data()) for result in results]
    finally:
        for result in results:
            os.close(result.fd)
    failed = job.first_failure()
    if failed is not None:
        words = display.last_words(failed.number, again=True)
        raise_failure(failed, messages[failed.number], words.decode(errors="replace"), messages)
    if not in_time:
        late = [str(rank.number) for rank in job.ranks if rank.status and rank.died is None]
        raise _errors.TimeoutError(
            lines(
                f"malt.run did not end within {timeout} s", f"rank {', '.join(late)} had not returned and was stopped"
            )
        )
    return [_result(rank, message) for rank, message in zip(job.ranks, messages, strict=True)]


def _result(rank: Outcome, message: tuple[bool, Any] | None) -> Any:
    """Return what a rank returned; of one that died before that, the error that says so."""
    return death(rank) if rank.died is not None and message is None else returned(rank.number, message)


def death(rank: Outcome) -> _errors.PeerError:
    """Return the error that takes the place of the value of a rank that died."""
    why = f"it {rank.fate()} after {rank.lived:.1f} s"
    return _errors.PeerError(lines(f"rank {rank.number} is dead: {why}"), rank.number, "ended", why)


def returned(rank: int, message: tuple[bool, Any] | None) -> Any:
    """Return what a rank that has not failed returned."""
    if message is None:
        do = "Do not call sys.exit in the function: return."
        raise _errors.PeerError(lines(f"rank {rank} ended without returning", do=do), rank)
    return message[1]


def calling(module: str, arguments: str) -> list[str]:
    """Return the command of a new Python that calls main of one of our modules."""
    # It would look for the package where the environment says, not where it is.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {home!r}); from {module} import main; main({arguments})"
    return [sys.executable, "-c", code]


def start(
    job: Job, call: int, env: Mapping[str, str], pass_fds: Sequence[int] = (), number: int | None = None
) -> Result:
    """Start a rank that reads its call from a file, and return what will come back."""
    reader, writer = os.pipe()
    try:
        argv = calling("malt._ranks.child", f"{call}, {writer}, {os.getpid()}")
        job.start(argv, env, (call, writer, *pass_fds), number=number)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    result = Result(reader)

    def read() -> None:
        if not result.read():
            job.forget(reader)

    job.watch(reader, read)
    return result


def _show(stream: int, lines: bytes) -> None:
    (sys.stdout if stream == 1 else sys.stderr).write(lines.decode(errors="replace"))


def raise_failure(
    failed: Outcome, message: tuple[bool, Any] | None, words: str, messages: Sequence[tuple[bool, Any] | None] = ()
) -> NoReturn:
    """Raise what a rank failed with; words are its last, messages those of all ranks."""
    if message is None or message[0]:
        raise _errors.PeerError(
            lines(f"rank {failed.number} {failed.fate()}", words and f"its last output was:\n{words}"),
            failed.number,
        )
    packed, kind, text, trace = message[1]
    try:
        error: BaseException = pickle.loads(packed)
        if not isinstance(error, Exception):
            raise TypeError
    except Exception:  # an exception that pickle cannot make again
        error = _errors.Error(lines(f"rank {failed.number} raised {kind}", text))
    same = [str(rank) for rank, other in enumerate(messages) if other is not None and other[1:] == message[1:]]
    where = f"ranks {', '.join(same)}" if len(same) > 1 else f"rank {failed.number}"
    error.malt_ranks = same or [str(failed.number)]  # type: ignore[attr-defined]  # it is no mistake of malt's own
    note = f"On {where}:\n\n{trace}".rstrip()
    if hasattr(error, "add_note"):
        error.add_note(note)
        raise error
    raise error from RankTracebackError(note)  # before Python 3.11


class RankTracebackError(Exception):
    """Carries the traceback of a rank as its text."""
