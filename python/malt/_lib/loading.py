"""Loads the extension, and with it the Go runtime, when something of it is first used.

`lib` and `ffi` stand for it from the beginning, so that any module can import
them. In a forked child they only raise: the threads of the Go runtime do not
survive a fork, so a call there would never return.
"""

from __future__ import annotations

import atexit
import math
import os
import resource
import threading
from types import TracebackType
from typing import Any

from malt._errors import OutOfMemoryError, StateError
from malt._guide import lines

ADDRESSES = 2 << 30
"""Bytes of address space that the library must find when it is loaded."""

LONG_WAIT = 10.0
"""Seconds after which a wait says whom it is for."""

_loading = threading.Lock()
_loaded_by = 0
"""The process that has loaded the library, or is loading it."""
_ended = False


class _Unloaded:
    """Stands for the library, or for cffi's view of it, until it is first used."""

    def __getattr__(self, name: str) -> Any:
        _load()
        return getattr(self, name)


class _Loaded:
    """Has everything in its dictionary, and no `__getattr__`: with one each look costs twice as much."""


class _Forked(_Unloaded):
    """Stands for them in a forked child."""

    def __getattr__(self, name: str) -> Any:
        raise StateError(
            lines(
                f"process {os.getpid()} was forked from one that uses malt, and cannot use it",
                "the library's threads do not survive a fork; malt.rank() and malt.size() do work",
                "Start helpers with multiprocessing's 'spawn', or leave malt to the rank itself.",
            )
        )


lib: Any = _Unloaded()
ffi: Any = _Unloaded()


def _load() -> None:
    global _loaded_by
    with _loading:
        if type(lib) is not _Unloaded:
            return
        _check_addresses()
        _loaded_by = os.getpid()
        from malt import _malt

        found, expected = _malt.lib.malt_abi_version(), _malt.lib.MALT_ABI_VERSION
        if found != expected:
            raise ImportError(
                lines(f"libmalt.so.0 has ABI {found}, the extension was built for {expected}", do="Install malt again.")
            )
        _malt.ffi.def_extern("malt_python_look", error=1, onerror=_catch)(_look)
        _malt.ffi.def_extern("malt_python_report", error=1, onerror=_catch)(_report)
        _malt.ffi.def_extern("malt_python_news", onerror=_catch)(_news)
        _malt.ffi.def_extern("malt_python_troubled", onerror=_catch)(_troubled)
        _malt.lib.malt_look_up(_malt.lib.malt_python_look)
        _malt.lib.malt_on_long_wait(math.ceil(LONG_WAIT * 1000), _malt.lib.malt_python_report)
        _malt.lib.malt_on_death(_malt.lib.malt_python_news)
        _malt.lib.malt_on_trouble(_malt.lib.malt_python_troubled)
        atexit.register(_at_exit)
        _malt.lib.malt_finalize_at_exit()
        _fill(ffi, _malt.ffi)
        _fill(lib, _malt.lib)


def _check_addresses() -> None:
    """Raise where the Go runtime would end the process, because it cannot reserve addresses.

    It takes few of them as memory. How many it needs was measured: a job of 3 ranks fails
    now and then with 1.6 GiB beside what Python has, and peaks at 1.9 GiB with 64 cores.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    if limit - used < ADDRESSES:
        gib = 1 << 30
        raise OutOfMemoryError(
            lines(
                f"{used / gib:.2f} of the {limit / gib:.2f} GiB of address space of this process are used",
                f"the library needs {ADDRESSES / gib:.0f} GiB more, most of which takes no memory",
                "Raise it (ulimit -v unlimited), or limit memory by a control group instead.",
            )
        )


def _fill(target: Any, source: Any) -> None:
    target.__dict__.update((name, getattr(source, name)) for name in dir(source))
    target.__class__ = _Loaded


def _look() -> int:
    """Look up from a wait, in the thread that waits: being called is what lets Python handle its signals."""
    return ended()


def _report(waited: int, left: int) -> int:
    """Warn of a wait that has lasted so many milliseconds, and may last so many more."""
    from .waiting import warn_of_wait

    warn_of_wait(waited / 1000, left / 1000)
    return 0


def _news(rank: int, why: Any) -> None:
    """Warn that a rank has died, and that this one goes on."""
    from .waiting import warn_of_death

    warn_of_death(rank, ffi.string(why).decode(errors="replace"))


def _troubled(trouble: Any) -> None:
    """Warn of what is the matter with a vector."""
    from .waiting import warn_of_trouble

    warn_of_trouble(trouble, ffi.string(trouble.name).decode())


caught: dict[int, BaseException] = {}
"""What a signal handler raised while a thread was in a call, by thread: at most one, since it ends the wait.

The caller of a function that may wait looks here when it comes back, whatever it answers.
"""


def _catch(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
    """Keep what was raised in `_look`, `_report`, `_news` or `_troubled` for `raise_caught`."""
    caught[threading.get_ident()] = value


def raise_caught() -> None:
    """Raise what was caught in a call of this thread."""
    if caught and (value := caught.pop(threading.get_ident(), None)) is not None:
        raise value


def _after_fork() -> None:
    """Keep the child out, also where the parent was just loading in another thread.

    A hook that came before this one may have loaded the library in the child itself.
    """
    if _loaded_by not in (0, os.getpid()):
        for part in (lib, ffi):
            part.__dict__.clear()
            part.__class__ = _Forked


os.register_at_fork(after_in_child=_after_fork)


def forked() -> bool:
    """Tell whether this is a child of a process that uses the library."""
    return type(lib) is _Forked


def alive() -> None:
    """Raise in a forked child."""
    if forked():
        _ = lib.malt_rank


def ended() -> bool:
    """Tell whether this process has left the job, for good."""
    return _ended


def mark_ended() -> bool:
    """Note that this process leaves the job; False if it had left, or was never in it."""
    global _ended
    if _ended or forked():
        return False
    _ended = True
    return True


def _at_exit() -> None:
    """End waits in daemon threads while there is an interpreter in which they can look up.

    The library leaves the job later, in a handler of C's exit: that is told the exit code. Where it
    has to wait then, for ranks that it passes changes on to, C says so.
    """
    if not forked():
        mark_ended()
        lib.malt_look_up(ffi.NULL)
        lib.malt_on_long_wait(0, ffi.NULL)
        lib.malt_python_leaves(math.ceil(LONG_WAIT * 1000))
        lib.malt_on_death(ffi.NULL)
        lib.malt_on_trouble(ffi.NULL)
