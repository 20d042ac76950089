"""What the sub-commands share about their arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from malt import _options
from malt._cli.wrap import Formatter
from malt._room import MOST, shortage


class UsageError(Exception):
    """The command line is wrong.

    Parameters
    ----------
    command : str
        Whose command line, such as ``malt run``.
    message : str
        What was wrong, what was expected, what to do.
    """

    def __init__(self, command: str, message: str) -> None:
        super().__init__(f"{command}: {message}\n(see {command} --help)")


def nearest(word: str, names: Iterable[str]) -> str:
    """Return ``did you mean …?`` where a name is near, else the names."""
    names = list(names)
    found = _options.nearest(word, names)
    return f"did you mean {found!r}?" if found else f"expected one of {', '.join(names)}"


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
                self.error(f"there is no option {name}: {nearest(name, self.options())}")
            self.error(f"{word!r} was not expected here")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and exiting."""
        raise UsageError(self.prog, message.removeprefix("argument "))


def settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables that options of ``malt run`` stand for."""
    told = {} if options.timeout is None else {"MALT_TIMEOUT": str(options.timeout)}
    return told | {"MALT_ENCRYPT": "1"} if options.encrypt else told


def whole(text: str, least: int, most: int, what: str, example: str) -> int:
    """Return text as a whole number from `least` to `most`; the error is argparse's."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what}: {least} to {most} are possible, such as {example}")
    return value


def ranks(text: str) -> int:
    """Return a number of ranks that a job can have."""
    return whole(text, 1, MOST, "number of ranks", "-n 4")


def see_room(command: str, argv: Sequence[str], count: int, more: int = 0) -> None:
    """Raise a UsageError if this machine has no room for so many processes; see `_room.shortage`."""
    found = shortage(count, more, python=argv[0] == sys.executable)
    if found is not None:
        raise UsageError(command, str(found))
