"""The exceptions of MALT.

Each is a :class:`Error` and at the same time the builtin of its meaning, so both
``except malt.Error`` and ``except TimeoutError`` work. Bad arguments are plain
:class:`ValueError` and :class:`TypeError`: they are mistakes in the program, not
something that happened to the job.
"""

from __future__ import annotations

import builtins

__all__ = [
    "Error",
    "HostError",
    "MismatchError",
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
    """Something went wrong in the job; every exception of MALT's own is one."""

    same = ""
    """What happened, in words that are the same on all ranks that see it; empty if there are none."""


class TimeoutError(Error, builtins.TimeoutError):
    """A wait took longer than its timeout. The message names the ranks waited for.

    The call has been given up, not the object: a vector can be used on. A ``sync``
    that timed out has scattered, so ``gather`` is what goes on with it. Other ranks
    that need this one in a collective call that it gave up get a :class:`StateError`.
    A rank that ends before a later call on the same vector has ended in another way (after a
    collective call: any later call) is dead to the others, whatever its exit code.
    """


class PeerError(Error, ConnectionError):
    """A rank that is needed is dead.

    Its process has been killed, has ended with an exit code other than 0, or has
    ended after a `PeerError` or a `TimeoutError` of its own; or its host cannot be
    reached. The job is over: when the rank that gets this ends, it is dead as well.

    Attributes
    ----------
    rank : int or None
        The rank that died first. Others may have ended because of its death.
    kind : {"ended", "failed", "unreachable"} or None
        Its process has ended without a word; it said that it failed; its host
        gives no sign of life.
    why : str
        How it is known to be dead, or what it said before it ended.
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


class StaleError(Error, RuntimeError):
    """A vector or segment was used after it had been closed."""


class UnsupportedError(Error, NotImplementedError):
    """MALT cannot do this, or not with this transport, graph or consistency."""


class StateError(Error, RuntimeError):
    """Not now: the object is in another call, or what must come first has not happened.

    Examples are a second scatter without a gather in ``bsp``, a fold that gathers
    its own vector, a forked child that touches MALT, and a collective call that
    a rank misses because it has ended.
    """


class MismatchError(Error, ValueError):
    """The ranks disagree: about a vector, or about which collective call this is."""

    same = "the ranks disagree"  # each rank names its own call beside that of another


class OutOfMemoryError(Error, MemoryError):
    """The machine, or its control group, has not got the memory; nothing was reserved.

    In a collective call all ranks get this where one lacks the memory, so that all
    can do something else.
    """


class PackageError(Error, ImportError):
    """A package that this needs, and MALT itself does not, is missing; the message says how to get it."""


class HostError(Error, OSError):
    """The operating system refused something; the message says what."""


for _name in __all__:  # tracebacks show the name under which it is to be caught
    globals()[_name].__module__ = "malt"
