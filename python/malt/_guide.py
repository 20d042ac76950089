"""Where the guide says more about an error."""

from __future__ import annotations

__all__ = ["ELSEWHERE", "see"]


def see(heading: str) -> str:
    """Return the last sentence of an error that a heading of the guide explains.

    A test holds that there is such a heading.
    """
    return f'. See "{heading}" in the guide'


ELSEWHERE = "is one under `if malt.rank() == 0`?" + see("A rank that is elsewhere").removeprefix(".")
"""For a collective call that not all ranks make: what it most often is."""
