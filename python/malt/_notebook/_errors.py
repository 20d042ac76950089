"""The exceptions that end a cell, as a notebook shows them.

IPython calls `_render_traceback_` of an exception. Here it shows the errors of
the ranks instead of the frames of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from malt._errors import Error, PeerError
from malt._guide import below


class CellError(Error):
    """A cell cannot run: its options, or the variables of the notebook, are wrong."""

    def __init__(self, what: str, where: str = "", do: str = "") -> None:
        super().__init__(below(what, where, do))

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CellSyntaxError(CellError):
    """The cell is not Python."""

    def __init__(self, shell: Any, error: SyntaxError) -> None:
        super().__init__(str(error))
        self._lines = shell.SyntaxTB.structured_traceback(type(error), error, [])

    def _render_traceback_(self) -> list[str]:
        lines: list[str] = self._lines
        return lines


class RankError(Error):
    """A cell raised an exception on some ranks.

    Attributes
    ----------
    rank : int
        The first of these ranks.
    """

    def __init__(self, message: str, rank: int, shown: Sequence[str]) -> None:
        super().__init__(message)
        self.rank = rank
        self._shown = list(shown)

    def _render_traceback_(self) -> list[str]:
        return self._shown


class RankDiedError(PeerError):
    """A rank has ended; the others have been ended."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Interrupted(KeyboardInterrupt):
    """The user has stopped the cell."""

    def _render_traceback_(self) -> list[str]:
        return [f"KeyboardInterrupt: {self}"]
