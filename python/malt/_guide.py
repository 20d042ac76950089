"""Where the guide says more about an error."""

from __future__ import annotations

__all__ = ["ELSEWHERE", "LATE", "see"]


def see(heading: str) -> str:
    """Return the last sentence of an error that a heading of the guide explains.

    A test holds that there is such a heading.
    """
    return f'. See "{heading}" in the guide'


ELSEWHERE = "is one under `if malt.rank() == 0`?" + see("A rank that is elsewhere").removeprefix(".")
"""For a collective call that not all ranks make: what it most often is."""

LATE = (
    "each rank has to sync the same vectors, in the same order, for as long as the others do, unless it ends: does one "
    "do without, or does it only take longer?" + see("A sync that waits").removeprefix(".")
)
"""For a wait for what other ranks scatter, or gather."""
