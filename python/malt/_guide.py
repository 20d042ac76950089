"""The form of errors: three short lines, and where the guide says more."""

from __future__ import annotations

__all__ = ["lines", "more"]


def lines(what: str, where: str = "", do: str = "", topic: str = "") -> str:
    """Return the message of an error: what happened; where, and which ranks; what to do; and where there is more.

    A test holds that the guide has each topic that is named.
    """
    return "\n".join(line for line in (f"malt: {what}", where, do, more(topic)) if line)


def more(topic: str) -> str:
    """Return the last line of an error that a topic of the guide explains."""
    return f"More: malt explain {topic}" if topic else ""
