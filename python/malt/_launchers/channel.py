"""How a word of rank 0 reaches the others, where no variable tells them what they have to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

PRIVATE = ("pmi", "pmix")
"""Channels by which launchers speak to their own ranks alone.

The others are open to any process that reaches them, so that nothing secret may go there. None carries what
the ranks have from their user.
"""

Share = Callable[[Mapping[str, str], int, int, str, float], str]
"""Called by all ranks together with (environment, rank, size, word, seconds that it may
take): returns rank 0's word, which has no blanks. The words of the others are ignored.
"""


class ChannelError(Exception):
    """A channel is not there, or fails; the message fits behind a colon."""


def named(name: str) -> Share:
    """Return the channel of a name, such as ``pmi``: that of the module beside this one."""
    share: Share = import_module(f".{name}", __package__).share
    return share
