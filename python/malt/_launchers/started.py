"""What a launcher's variables say: who this process is, and how it finds rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .._guide import lines


class Started(NamedTuple):
    """A rank that something other than ``malt run`` has started."""

    by: str
    """The launcher, for sentences."""
    rank: int
    size: int
    together: bool = False
    """All ranks are on this machine."""
    job: str = ""
    """What all ranks know and no other job of this machine has; empty: there is nothing of that kind."""
    channel: str = ""
    """What carries a word of rank 0 to the others, see `channel.named`; empty: nothing does."""
    store: str = ""
    """Where rank 0 is to listen, if all know that without a word."""
    hand: str = ""
    """How a user hands a variable to all ranks."""
    ends: str = ""
    """Why the others cannot go on when a rank dies; empty: they can, maybe with an option of the launcher."""


def number(env: Mapping[str, str], name: str) -> int:
    """Return a variable that a launcher sets, as a whole number.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        return int(env[name])
    except ValueError:
        raise ValueError(lines(f"{name}={env[name]!r}", "a launcher should have set it to a whole number")) from None
