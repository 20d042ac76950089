"""Options: their names, options with a few words as values, and the option string of the library."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ._errors import Error
from ._guide import lines

F = TypeVar("F", bound=Callable[..., Any])


def spelled(function: F) -> F:
    """Leave the ``**unknown: NoReturn`` of a function out of what help and documentation show.

    Such a function takes options that it has not got to raise `misspelt` for them.
    To type checkers there are none; and nothing is wrapped, which every call would pay for.
    """
    import inspect  # a third of the time that `malt run` takes to start

    whole = inspect.signature(function)
    known = [p for p in whole.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = whole.replace(parameters=known)  # type: ignore[attr-defined]
    return function


def options_of(function: Callable[..., object]) -> list[str]:
    """Return what can be given to a function by name."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]


def misspelt(unknown: Iterable[str], *functions: Callable[..., object]) -> TypeError:
    """Return the error for options that none of the functions has."""
    word, known = next(iter(unknown)), [name for function in functions for name in options_of(function)]
    near = nearest(word, known)
    if near and word == "average":  # other libraries' average=True
        near += '="mean"'
    return TypeError(
        lines(
            f"unexpected option {word}",
            "" if near else f"it is one of {', '.join(known)}",
            f"Did you mean {near}?" if near else "",
        )
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of ``known`` that was meant, probably; None where none is near.

    The library has the words of other systems; where it cannot be asked, there is no hint.
    """
    from . import _lib  # not needed where nothing is misspelt

    words = ["-".join(word.replace("\0", " ").split()), *known]
    with contextlib.suppress(Error, ImportError):
        return _lib.inspect(" ".join(["meant", *words])) or None
    return None


def choose(name: str, value: object, known: Sequence[str]) -> None:
    """Raise unless ``value`` is one of ``known``, naming the nearest."""
    if isinstance(value, str) and value in known:
        return
    # Another library's object has the word as its name: np.sum, torch.distributed.ReduceOp.SUM.
    word = value if isinstance(value, str) else str(getattr(value, "__name__", value))
    if word.lower() == "adasum":  # spelt like sum, and something else
        hint = "MALT has no Adasum."
    else:
        near = nearest(word, known)
        hint = f"Did you mean {near!r}?" if near else ""
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(lines(f"{name}={value!r}", f"expected one of {', '.join(known)}", hint))


def whole(name: str, value: object, least: int, most: int, kind: str, within: str) -> int:
    """Return a whole number from ``least`` to ``most``; kind and within say what was expected where it is none."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(lines(f"{name}={value!r}", kind)) from None
    if not least <= number <= most:
        raise ValueError(lines(f"{name}={number}", within))
    return number


def joined(**options: str | None) -> str:
    """Return the ``key=value`` string of the options that are not None.

    The values themselves are checked by the library, which names the nearest one.
    """
    for key, value in options.items():
        if value is None:
            continue
        if not isinstance(value, str):
            slack = key == "consistency" and isinstance(value, int) and not isinstance(value, bool)
            hint = f"Did you mean 'ssp:{value}'?" if slack else ""
            raise TypeError(lines(f"{key}={value!r}", "expected a string", hint))
        if not value or any(c.isspace() for c in value):
            raise ValueError(lines(f"{key}={value!r}", "expected a value without blanks"))
    return " ".join(f"{key}={value}" for key, value in options.items() if value is not None)
