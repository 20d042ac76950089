"""The form of errors: three short lines, and where the guide says more."""

from __future__ import annotations

from ._frames import spoken


def below(*texts: str) -> str:
    """Put the parts that are not empty below each other."""
    return "\n".join(filter(None, texts))


def lines(what: str, where: str = "", do: str = "", topic: str = "", by: str = "malt") -> str:
    """Return the message of an error: what happened; where, and which ranks; what to do; and where there is more.

    A test holds that the guide has each topic that is named.
    """
    return spoken(below(f"{by}: {what}", where, do, more(topic)))


def more(topic: str) -> str:
    """Return the last line of an error that a topic of the guide explains."""
    return f"More: malt explain {topic}" if topic else ""
