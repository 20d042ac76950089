"""A rank of a notebook: a child process of the kernel that runs one cell after another.

Ctrl-C reaches a rank as SIGINT. It raises KeyboardInterrupt in a cell only: a rank
that has just ended its cell does not notice.
"""

from __future__ import annotations

import builtins
import ctypes
import getpass
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import malt
from malt._guide import lines
from malt._ranks.parent import end_with
from malt._ranks.pickles import packed

from ._channel import Channel

UNFINISHED = 0.2
"""Seconds that a vector waits for the rest of a step that will not be folded."""

SETTLE = 1.0
"""Seconds that ranks wait for each other after a cell that failed."""

AGAIN = 0.01
"""Seconds after which a Ctrl-C that was lost in a finalizer comes again."""


def main(fd: int, parent: int) -> None:
    """Run as a rank.

    Parameters
    ----------
    fd : int
        Descriptor of the connection to the kernel.
    parent : int
        Process id of the kernel.
    """
    end_with(parent)
    os.set_inheritable(fd, False)
    _Worker(Channel(socket.socket(fileno=fd))).serve()


class _Worker:
    """Serves the requests of the kernel.

    Parameters
    ----------
    channel : Channel
        The connection to the kernel.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._rank = int(os.environ["MALT_RANK"])
        self._shows = 0  # how often something was shown
        self._held = False  # Ctrl-C waits
        self._pressed = False  # … and has come
        self._raised = 0  # how often it has raised in this cell

    def serve(self) -> None:
        """Answer requests until the kernel hangs up."""
        from ._shell import start

        message = self._channel.receive()
        if message is None:
            return
        ready = message[1]
        sys.path[:], sys.argv[:] = ready["path"], ready["argv"]
        builtins.input = getpass.getpass = _no_keyboard
        calm = partial(self._uninterrupted, forget=True)
        self._shell = start(self._show, calm, lambda: self._raised, ready["colors"])
        self._shell.user_ns["malt"] = malt
        requests: dict[str, Callable[[Any], Any]] = {"cell": self._cell, "settle": self._settle}
        signal.signal(signal.SIGINT, self._interrupt)
        sys.unraisablehook = self._lost
        self._channel.send("done")
        while (message := self._channel.receive()) is not None:
            kind, content = message
            if kind in requests:  # else it came when the cell had ended
                self._channel.send("done", requests[kind](content))

    # -------------------------------------------------------------------- Ctrl-C

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        if self._held:
            self._pressed = True
            return
        while frame is not None:
            if frame.f_code is _Worker._run.__code__:
                self._raised += 1
                raise KeyboardInterrupt
            frame = frame.f_back

    def _lost(self, what: sys.UnraisableHookArgs) -> None:
        """Press again where Ctrl-C met a finalizer, from which nothing can be raised."""
        if what.exc_type is KeyboardInterrupt:
            threading.Timer(AGAIN, os.kill, (self._pid, signal.SIGINT)).start()
        else:
            sys.__unraisablehook__(what)

    @contextmanager
    def _uninterrupted(self, forget: bool = False) -> Iterator[None]:
        """Hold Ctrl-C back until the end of the context, or drop it (forget); for the main thread."""
        self._held, self._pressed = True, False
        try:
            yield
        finally:
            self._held = False
        if self._pressed and not forget:
            raise KeyboardInterrupt

    # --------------------------------------------------------------------- a cell

    def _cell(self, content: dict[str, Any]) -> dict[str, Any]:
        """Run a cell; return its outcome."""
        signal.signal(signal.SIGINT, self._interrupt)  # the last cell may have set another one
        self._raised = 0
        error = self._call(content)
        if os.getpid() != self._pid:  # a child that the cell has forked and not ended
            os._exit(error is not None)
        answer = self._answer(content, error)
        _flush()
        return answer

    def _call(self, content: dict[str, Any]) -> BaseException | None:
        try:
            return self._run(content)
        except BaseException as error:  # Ctrl-C, or a value that cannot be unpickled
            return error

    def _run(self, content: dict[str, Any]) -> BaseException | None:
        if self._channel.ready():  # a message now can only be the interrupt of this cell
            raise KeyboardInterrupt
        for name, data in content["values"].items():
            self._shell.user_ns[name] = _value(name, data)
        result = self._shell.cell(content["source"], content["count"], self._rank in content["show"])
        failure: BaseException | None = result.error_before_exec or result.error_in_exec
        return failure

    def _answer(self, content: dict[str, Any], error: BaseException | None) -> dict[str, Any]:
        world = sys.modules.get("malt._job.world")
        answer: dict[str, Any] = {"joined": getattr(world, "_me", None) is not None, "values": {}, "error": None}
        if error is None:
            try:
                answer["values"] = {name: self._value(name) for name in content["wanted"]}
            except _ValueError as failure:
                return self._answer(content, failure)
            return answer
        if isinstance(error, _ValueError):
            return {**answer, "error": ("TypeError", str(error), "", [str(error)])}
        name = type(error).__name__
        with suppress(Exception):  # from the exception's own code
            return {**answer, "error": (name, str(error), self._shell.place(error), self._shell.trace(error))}
        return {**answer, "error": (name, "", "", [name])}

    def _value(self, name: str) -> bytes:
        if name not in self._shell.user_ns:
            raise _ValueError(lines(f"-o {name}", "the ranks have no variable of that name"))
        try:
            return packed(self._shell.user_ns[name])[0]
        except TypeError as error:
            kind = type(self._shell.user_ns[name]).__qualname__
            raise _ValueError(lines(f"-o {name}", f"a {kind} cannot be sent to the notebook", str(error))) from None

    def _settle(self, word: str) -> bool:
        """Meet the other ranks after a cell that failed; return whether that went well.

        Collective calls are numbered. A rank that has made fewer of them receives
        the messages of calls that the others have given up, one for each call that it
        missed. So it calls until all ranks have sent this word.
        """
        from malt import _lib
        from malt._job import world

        until = time.monotonic() + SETTLE
        while (left := until - time.monotonic()) > 0:
            with suppress(malt.Error):
                if set(world.allgather(word, timeout=left)) == {word}:
                    _lib.drop_unfinished(UNFINISHED)
                    return True
        return False

    # -------------------------------------------------------------------- showing

    def _show(self, kind: str, content: Any) -> None:
        """Show something under the cell, after the lines that were printed before it."""
        if not self._shell.shown or os.getpid() != self._pid:
            return
        _flush()
        if threading.current_thread() is not threading.main_thread():
            self._channel.send(kind, (None, content))
            return
        with self._uninterrupted():
            self._shows += 1
            self._channel.send(kind, (self._shows, content))
            # Pipe and connection are read in any order: the next line has to wait.
            while (message := self._channel.receive()) is not None:
                if message == ("shown", self._shows):
                    return


class _ValueError(TypeError):
    """A value cannot be sent or received; the text says why."""


def _value(name: str, data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:
        raise _ValueError(lines(f"-i {name} cannot be received", f"{type(error).__name__}: {error}")) from None


def _flush() -> None:
    """Flush everything that was printed, by C code as well."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the cell may have replaced the stream
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _no_keyboard(*_: Any, **__: Any) -> NoReturn:
    raise malt.UnsupportedError(
        lines(
            "input() was called on a rank",
            "ranks have no keyboard",
            "Ask in a cell without %%malt, and send the answer with -i.",
        )
    )
