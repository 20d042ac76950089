"""Arguments that are one of a few words, and the option string of the library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["choose", "joined", "nearest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of ``known`` that was meant, probably; None where none is near."""
    import difflib  # not needed where nothing is misspelt

    return next(iter(difflib.get_close_matches(word, list(known), 1, 0.51)), None)


def choose(name: str, value: object, known: Sequence[str]) -> None:
    """Raise unless ``value`` is one of ``known``, naming the nearest."""
    if not isinstance(value, str):
        raise TypeError(f"malt: {name}={value!r}: one of {', '.join(known)} is expected")
    if value not in known:
        near = nearest(value, known)
        hint = f": did you mean {near!r}?" if near else ""
        raise ValueError(f"malt: {name}={value!r}: one of {', '.join(known)} is expected{hint}")


def joined(**options: str | None) -> str:
    """Return the ``key=value`` string of the options that are not None.

    The values themselves are checked by the library, which names the nearest one.
    """
    for key, value in options.items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise TypeError(f"malt: {key}={value!r}: a string is expected")
        if not value or any(c.isspace() for c in value):
            raise ValueError(f"malt: {key}={value!r}: a value without blanks is expected")
    return " ".join(f"{key}={value}" for key, value in options.items() if value is not None)
