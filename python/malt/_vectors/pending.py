"""A sync that goes on while the program computes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .. import _lib


class Pending:
    """A sync that `Vector.sync_begin` has begun, and that goes on while the program computes.

    Nothing may read or write the vector's arrays until `wait` has returned.
    """

    def __init__(self, call: Callable[[], int], finish: Callable[[int], None], name: str) -> None:
        self._finish: Callable[[int], None] | None = finish
        self._answer: int | BaseException = 0
        self._end = threading.Event()
        _lib.JOB.begun.append(self._end)
        try:
            threading.Thread(target=self._run, args=(call,), name=f"sync of {name}", daemon=True).start()
        except BaseException:
            _lib.JOB.begun.remove(self._end)
            raise

    def _run(self, call: Callable[[], int]) -> None:
        try:
            self._answer = call()
        except BaseException as e:
            self._answer = e
        finally:
            _lib.JOB.begun.remove(self._end)
            self._end.set()

    def wait(self) -> int:
        """Wait until the values have been exchanged. A second call returns, or raises, the same.

        Ctrl-C ends the wait, but not the sync: call it again to go on waiting.

        Returns
        -------
        int
            As of `Vector.sync`.

        Raises
        ------
        StateError, TimeoutError, PeerError
            As for `Vector.sync`.
        """
        self._end.wait()
        if isinstance(self._answer, BaseException):
            raise self._answer
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish(self._answer)
        return self._answer

    def done(self) -> bool:
        """Tell whether `wait` returns, or raises, at once."""
        return self._end.is_set()
