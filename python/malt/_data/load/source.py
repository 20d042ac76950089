"""What `malt.load` needs of a format."""

from __future__ import annotations

from typing import Any, Protocol

from ..turns import Cut


class Source(Protocol):
    """Files of one format, seen as one sequence of rows."""

    def count(self) -> int:
        """Return the number of rows. Collective."""

    def part(self, cut: Cut) -> Any:
        """Return those rows. Collective: what the ranks' parts have in common is agreed on.

        Without a call of `count` before, for slices without a stop only.
        """
