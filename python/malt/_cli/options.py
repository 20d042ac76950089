"""What the sub-commands share about their arguments."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeVar, get_args

from malt import _options
from malt._cli.wrap import Formatter
from malt._guide import below, lines
from malt._ranks.room import MOST, shortage
from malt.typing import OnDeath

ON_DEATH = get_args(OnDeath)

N = TypeVar("N", int, float)

Refuse = Callable[..., NoReturn]
"""Raises an error; as of `UsageError`, less the command."""


class UsageError(Exception):
    """The command line is wrong.

    Parameters
    ----------
    command : str
        Whose command line, such as ``malt run``.
    what, where, do : str
        What is wrong; what was expected; what to do.
    """

    def __init__(self, command: str, what: str, where: str = "", do: str = "") -> None:
        super().__init__(below(lines(what, where, do, by=command), f"More: {command} --help"))


def unfit(what: str, where: str = "", do: str = "") -> argparse.ArgumentTypeError:
    """Return the error for an argument, before which argparse puts its option; as of `UsageError`."""
    return argparse.ArgumentTypeError(below(what, where, do))


def nearest(word: str, names: Iterable[str]) -> str:
    """Return ``Did you mean …?`` where a name is near, else the names."""
    names = list(names)
    found = _options.nearest(word, names)
    return f"Did you mean {found!r}?" if found else f"it is one of {', '.join(names)}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are a `UsageError` that names the nearest option."""

    def __init__(self, command: str, usage: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"malt {command}",
            usage=usage,
            description=description,
            epilog="examples:\n" + examples,
            formatter_class=Formatter,
            allow_abbrev=False,
        )

    def options(self) -> dict[str, bool]:
        """Return the options, and whether each takes a value."""
        return {name: action.nargs != 0 for action in self._actions for name in action.option_strings}

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse, or raise a UsageError."""
        found, unknown = self.parse_known_args(arguments)
        for word in unknown:
            if word.startswith("-"):
                name = word.partition("=")[0]
                self.error(f"there is no option {name}", nearest(name, self.options()))
            self.error(f"{word!r} was not expected here", do="Leave it out, or write its option in front of it.")
        return found

    def error(self, message: str, where: str = "", do: str = "") -> NoReturn:
        """Raise instead of printing and exiting."""
        raise UsageError(self.prog, message.removeprefix("argument "), where, do)


def settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables that options of ``malt run`` stand for."""
    told = {
        "MALT_TIMEOUT": options.timeout,
        "MALT_ON_DEATH": options.on_death,
        "MALT_MIN_RANKS": options.min_ranks,
        "MALT_EVENTS": options.events,
    }
    if options.encrypt:
        told["MALT_ENCRYPT"] = "1"
    if options.bind:
        told["MALT_BIND"] = "1"
    return {name: str(value) for name, value in told.items() if value is not None}


def refuse_given(options: argparse.Namespace, names: Iterable[str], refuse: Refuse, why: str, *more: str) -> None:
    """Raise if one of some options is given; the error begins with it."""
    for name in names:
        if getattr(options, name) is not None:
            refuse(f"--{name.replace('_', '-')} {why}", *more)


def number(kind: Callable[[str], N], text: str, least: N, most: N, what: str, example: str) -> N:
    """Return text as a number from `least` to `most`; the error is argparse's."""
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise unfit(f"{text!r} is not a {what}", f"expected {least} to {most}, such as {example}")
    return value


def whole(text: str, least: int, most: int, what: str, example: str) -> int:
    """Return the same for a whole number."""
    return number(int, text, least, most, what, example)


RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}

TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def quantity(
    text: str, units: Mapping[str, float], what: str, expected: str, example: str, least: float, most: float
) -> float:
    """Return a number with its unit as a number; the error is argparse's."""
    read = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-z%]+)", text.strip().lower())
    if read is not None and read[2] in units:
        value = float(read[1]) * units[read[2]]
        if least <= value <= most:
            return value
    raise unfit(f"{text!r} is not a {what}", f"expected {expected}, such as {example}")


def rate(text: str) -> float:
    """Return the bits per second of a cable."""
    return quantity(text, RATES, "rate", "bits per second from 8kbit on", "100Mbit or 2.5Gbit", 8e3, 1e12)


def delay(text: str) -> float:
    """Return the seconds from a host to another."""
    return quantity(text, TIMES, "time", "us, ms or s, up to 60s,", "200us or 5ms", 0, 60)


def ranks(text: str, least: int = 1) -> int:
    """Return a number of ranks that a job can have."""
    if text == "p":  # of -np
        raise unfit("-np is -n here", "expected a number after -n, such as -n 4")
    return whole(text, least, MOST, "number of ranks", "-n 4")


def counts(text: str) -> list[int]:
    """Return the number of ranks, or of those of each machine; 0 there is for one that only votes."""
    words = text.split(",")
    return [ranks(word, least=int(len(words) == 1)) for word in words]


def see_voters(counts: Sequence[int], env: Mapping[str, str], refuse: Refuse) -> None:
    """Refuse hosts without ranks where there is nothing to vote on, and a job without any rank."""
    if 0 not in counts:
        return
    if not any(counts):
        refuse("no machine has a rank", do="Give one a number of ranks above 0.")
    if env.get("MALT_ON_DEATH") != "continue":
        refuse(
            "a machine with 0 ranks only votes on who goes on after a death",
            "without --on-death continue the first death ends the job",
            "Pass --on-death continue, or leave that machine out.",
        )


def events(text: str) -> int:
    """Return for how many events each rank has room."""
    return whole(text, 0, 1 << 20, "number of events", "--events 10000")


def on_death(text: str, known: Sequence[str] = ON_DEATH) -> str:
    """Return what a rank's death is to do."""
    if text not in known:
        raise unfit(f"{text!r} is not known", nearest(text, known))
    return text


def see_on_death(env: Mapping[str, str], refuse: Refuse) -> str:
    """Return what the ranks are told of a rank's death; each of them would refuse a word that is not known."""
    told = env.get("MALT_ON_DEATH") or "stop"
    if told not in ON_DEATH:
        refuse(f"MALT_ON_DEATH: {told!r} is not known", nearest(told, ON_DEATH))
    return told


def see_room(command: str, argv: Sequence[str], count: int, more: int = 0) -> None:
    """Raise a UsageError if this machine has no room for so many processes; see `room.shortage`."""
    found = shortage(count, more, python=argv[0] == sys.executable)
    if found is not None:
        raise UsageError(command, *found.lines())
