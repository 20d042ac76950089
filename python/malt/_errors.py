"""The exceptions of MALT.

Each is a :class:`Error` and at the same time the builtin of its meaning, so both
``except malt.Error`` and ``except TimeoutError`` work. Bad arguments are plain
:class:`ValueError` and :class:`TypeError`: they are mistakes in the program, not
something that happened to the job.
"""

from __future__ import annotations

import builtins

__all__ = [
    "DeathWarning",
    "DriftWarning",
    "Error",
    "ExpelledError",
    "HostError",
    "MismatchError",
    "NotFiniteWarning",
    "OutOfMemoryError",
    "PackageError",
    "PeerError",
    "StaleError",
    "StateError",
    "TimeoutError",
    "UnsupportedError",
]


DEATHS = ("ended", "failed", "unreachable")
"""How a rank dies, in the order of MALT_DEATH_… from 1 on."""


class Error(Exception):
    """Something went wrong in the job. The base class of all of MALT's exceptions."""

    same = ""
    """What happened, in words that are the same on all ranks that see it; empty if there are none."""


class TimeoutError(Error, builtins.TimeoutError):
    """A wait took longer than its timeout. The message names the ranks waited for.

    The call has been given up, but the vector can still be used. A ``sync`` that timed
    out has already scattered: call ``gather`` to continue. If it was a collective call,
    other ranks that need this one in it get a :class:`StateError`.

    If the rank then ends, the other ranks count it as dead, whatever its exit code, unless
    a later call on the same vector (after a collective call: any later call) has ended
    without a timeout.
    """


class PeerError(Error, ConnectionError):
    """A rank that this one needs is dead.

    Its process was killed, ended with an exit code other than 0, or ended after a
    `PeerError` or a `TimeoutError` of its own; or its host cannot be reached. The job is
    over: when the rank that gets this error ends, it counts as dead, too.

    Attributes
    ----------
    rank : int or None
        The rank that died first. Others may have ended because of its death.
    kind : {"ended", "failed", "unreachable"} or None
        ``"ended"``: its process ended without reporting an error; ``"failed"``: it
        reported an error; ``"unreachable"``: its host does not answer.
    why : str
        The evidence of its death, or the error that it reported.
    """

    def __init__(self, message: str = "", rank: int | None = None, kind: str | None = None, why: str = "") -> None:
        super().__init__(message)
        self.rank, self.kind, self.why = rank, kind, why
        self.same = "" if rank is None else f"rank {rank} is dead"

    def __reduce__(self) -> tuple[type[PeerError], tuple[str, int | None, str | None, str]]:
        """Keep what is known when the exception is pickled, as multiprocessing does."""
        return type(self), (str(self), self.rank, self.kind, self.why)


def death(error: BaseException | None) -> PeerError | None:
    """Return the `PeerError` that an exception is, or was raised because of."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, PeerError):
            return error
        seen.append(error)
        error = error.__cause__ or error.__context__
    return None


class ExpelledError(Error, ConnectionError):
    """The others have gone on without this rank, or it is on the smaller side of a cut. Final."""


class DeathWarning(UserWarning):
    """A rank has died, and this one goes on (``--on-death continue``). It comes once for each death."""


class NotFiniteWarning(UserWarning):
    """A fold has brought NaN or infinity into a vector; it names the rank that they came from.

    It comes once for each vector and rank, on a rank that has folded them.
    """


class DriftWarning(UserWarning):
    """In ``async``, another rank has made less than half as many syncs as this one, for half a minute or more.

    It comes once for each vector and rank.
    """

    @property
    def same(self) -> str:
        """What is the same on all ranks that see it: their figures differ."""
        return str(self).partition("\n")[0]


class StaleError(Error, RuntimeError):
    """A vector or segment was used after it was closed."""


class UnsupportedError(Error, NotImplementedError):
    """MALT cannot do this, at least not with this transport, graph or consistency."""


class StateError(Error, RuntimeError):
    """The call is not possible now: another call is in progress, or must come first.

    Examples are a second scatter without a gather in ``bsp``, a fold that gathers its own
    vector, a call in a forked child, and a collective call after another rank has ended.
    """


class MismatchError(Error, ValueError):
    """The ranks disagree: they make different vectors, or different collective calls."""

    same = "the ranks disagree"  # each rank names its own call beside that of another


class OutOfMemoryError(Error, MemoryError):
    """The machine, or its control group, does not have enough memory.

    No memory was reserved. In a collective call all ranks get this error if one of them
    lacks memory, so that all can react in the same way.
    """


class PackageError(Error, ImportError):
    """An optional package is missing; the message says how to install it."""


class HostError(Error, OSError):
    """The operating system refused a request; the message names it."""


for _name in __all__:  # tracebacks show the name under which it is to be caught
    globals()[_name].__module__ = "malt"
