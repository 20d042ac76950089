"""Tracebacks as users see them: MALT's own frames are left out, but for ``MALT_LOG=debug``.

The exceptions themselves stay as they are: only while one is shown are its traceback and those of
its causes without these frames. So debuggers, pytest and ``traceback.print_exc`` see all of them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

unnamed: weakref.WeakValueDictionary[str, object] = weakref.WeakValueDictionary()
"""Vectors and segments made without a name, by what the library calls them: ``vector-1``."""

_STANDARD = os.path.dirname(os.__file__) + os.sep
"""Where Python's own modules are."""


def ours(frame: FrameType) -> bool:
    """Tell whether code of this package runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "malt"


def variable(value: object) -> str:
    """Return what the program calls something, as seen from the line that called malt; "" if it has no name."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        packaged = file.startswith(_STANDARD) or not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))
        if not ours(frame) and not packaged:
            for name, one in {**frame.f_globals, **frame.f_locals}.items():
                if one is value:
                    return name
            for name, one in getattr(frame.f_locals.get("self"), "__dict__", {}).items():
                if one is value:
                    return f"self.{name}"
        frame = frame.f_back
    return ""


def spoken(text: str) -> str:
    """Return the text of an error with the program's own names for what has none: ``w`` for ``vector-1``."""
    import re  # not with the package

    def named(found: re.Match[str]) -> str:
        value = unnamed.get(found[0])
        return (variable(value) if value is not None else "") or found[0]

    return re.sub(r"\b(?:vector|segment)-\d+\b", named, text)


def place(file: str, line: int, names: Mapping[str, Any]) -> str:
    """Return a line of a program as file, number and what stands there: ``train.py:12: v.sync()``."""
    import linecache  # not with the package: it takes longer than all the rest

    source = linecache.getline(file, line, dict(names)).strip()
    return f"{os.path.basename(file)}:{line}" + (f": {source}" if source else "")


def last(error: BaseException) -> str:
    """Return the line of the user's in which an exception was raised; empty if there is none."""
    found = ""
    for one in _entries(error.__traceback__):
        frame = one.tb_frame
        if not ours(frame):
            found = place(frame.f_code.co_filename, one.tb_lineno, frame.f_globals)
    return found


@contextlib.contextmanager
def hidden(error: BaseException) -> Iterator[None]:
    """Leave MALT's frames out of an exception, and of its causes, for as long as it is shown."""
    before: list[tuple[BaseException, TracebackType | None, bool]] = []
    if os.environ.get("MALT_LOG") != "debug":
        _hide(error, before)
    try:
        yield
    finally:
        for one, trace, suppressed in reversed(before):
            one.__traceback__, one.__suppress_context__ = trace, suppressed


def _hide(error: BaseException, before: list[tuple[BaseException, TracebackType | None, bool]]) -> None:
    """Hide in an exception and all that hang on it; ``before`` gets what they were."""
    todo = [error]
    while todo:
        one = todo.pop()
        if any(one is known for known, _, _ in before):
            continue
        before.append((one, one.__traceback__, one.__suppress_context__))
        context = one.__context__
        if context is not None and _inner(context):
            one.__suppress_context__ = True  # what MALT itself has caught on its way says nothing to a user
        if not _mistake(one):
            trace = _without_ours(one.__traceback__)
            one.__traceback__ = trace if trace is not None or one is not error else one.__traceback__
        todo += [other for other in (one.__cause__, one.__context__) if other is not None]
        todo += getattr(one, "exceptions", ())  # of a group


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    rest: TracebackType | None = None
    for one in reversed(_entries(trace)):
        if not ours(one.tb_frame):
            rest = TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rest


def _entries(trace: TracebackType | None) -> list[TracebackType]:
    """Return the entries of a traceback, that of the outermost frame first."""
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _inner(error: BaseException) -> bool:
    """Tell whether an exception was raised and caught within MALT, where nothing but MALT ran."""
    entries = _entries(error.__traceback__)
    return bool(entries) and all(ours(one.tb_frame) for one in entries)


def _mistake(error: BaseException) -> bool:
    """Tell whether an exception is a mistake of MALT's own: then its frames are what a report needs."""
    entries = _entries(error.__traceback__)
    meant = type(error).__module__ == "malt" or str(error).startswith("malt:") or not isinstance(error, Exception)
    meant = meant or hasattr(error, "malt_ranks")  # of a rank, see `_run.raise_failure`
    return bool(entries) and ours(entries[-1].tb_frame) and not meant


tell_launcher: Callable[[Exception], bool] | None = None
"""Set by `identity`: has the launcher of a rank that has not joined yet show an exception; False if it does not."""

_previous = sys.excepthook
_pid = os.getpid()


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an exception that nobody has caught, as whatever was ``sys.excepthook`` before does.

    The launcher shows that of a rank that has not joined the job yet: see `world._excepthook`.
    """
    with hidden(error):
        if isinstance(error, Exception) and os.getpid() == _pid and tell_launcher is not None and tell_launcher(error):
            return
        _previous(kind, error, error.__traceback__)


def plain(hook: object) -> bool:
    """Tell whether a ``sys.excepthook`` does no more than print a traceback."""
    return hook is sys.__excepthook__ or (hook is show and _previous is sys.__excepthook__)


def in_threads() -> None:
    """Show the exceptions of threads in the same way; called where threading is loaded anyway."""
    import threading

    before = threading.excepthook

    def show_in_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is None:
            before(told)
            return
        with hidden(told.exc_value):
            before(threading.ExceptHookArgs((told.exc_type, told.exc_value, told.exc_value.__traceback__, told.thread)))

    threading.excepthook = show_in_thread


def _show_in_cell(
    shell: Any, kind: type[BaseException], error: BaseException, _: TracebackType | None, tb_offset: int | None = None
) -> None:
    with hidden(error):
        shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


sys.excepthook = show
_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
if _shell is not None and not _shell.custom_exceptions:  # else it has a handler of the user's
    _shell.set_custom_exc((Exception,), _show_in_cell)
