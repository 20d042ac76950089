"""The hosts of ``malt run -H``, as they are named on the command line or in a file."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

HERE = ("localhost", "127.0.0.1", "::1")
"""Names for which no ssh is needed."""


class Host(NamedTuple):
    """A host, and how many ranks it gets."""

    name: str
    """What ssh is told, such as ``user@node1``."""
    ranks: int


_OPTIONS = ("ssh", "python", "env", "chdir")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this mode."""
    made = parser.add_argument_group("on several machines, by ssh")
    made.add_argument("-H", "--hosts", metavar="HOST:RANKS,...", help="the hosts, with the number of ranks of each")
    made.add_argument("--hostfile", metavar="FILE", help="the same in a file, with lines such as `node1 slots=4`")
    add_ways(made)
    made.add_argument(
        "-x",
        "--env",
        action="append",
        metavar="NAME[=VALUE]",
        help="a variable for the ranks; variables that begin with MALT_ always reach them",
    )
    made.add_argument(
        "--chdir", metavar="FOLDER", help="the folder in which the program runs; default: the path of this one"
    )


def add_ways(parser: argparse._ActionsContainer) -> None:
    """Add the options that say how a host is reached."""
    parser.add_argument("--ssh", metavar="COMMAND", help='the ssh command, such as "ssh -p 2222 -i key"')
    parser.add_argument("--python", metavar="COMMAND", help="the Python on the hosts; default: the path of this one")


def none_given(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> None:
    """See that the options of this mode are not used in another."""
    for name in _OPTIONS:
        if getattr(options, name) is not None:
            refuse(f"--{name} goes with -H or --hostfile, which name hosts")


def named(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> list[Host]:
    """Return the hosts that the options name."""
    if options.hosts is not None and options.hostfile is not None:
        refuse("say either -H or --hostfile")
    if options.ranks is not None and len(options.ranks) > 1:
        refuse("with -H or --hostfile the numbers of ranks stand with the hosts, such as -H a:4,b:2")
    usual = options.ranks[0] if options.ranks else None
    if options.hosts is not None:
        return from_words(options.hosts, usual, refuse)
    return from_file(options.hostfile, usual, refuse)


# user@name:ranks, where a name is one of the DNS, an alias of ssh's configuration, or an address.
_WORD = re.compile(r"((?:[^\s@:,\[\]]+@)?)(\[[0-9a-fA-F:.%\w]+\]|[^\s@:,\[\]]+)(?::(\d+))?")


def from_words(text: str, usual: int | None, refuse: Callable[[str], NoReturn]) -> list[Host]:
    """Return the hosts of ``a:4,b:4``.

    Parameters
    ----------
    text : str
        What stands after ``-H``.
    usual : int or None
        The number of ranks of a host that is named without one.
    refuse : callable
        Raises an error with the sentence that it gets.

    Examples
    --------
    >>> from_words("a:4,me@[fd00::1]:2,b", 1, print)
    [Host(name='a', ranks=4), Host(name='me@fd00::1', ranks=2), Host(name='b', ranks=1)]
    """
    return [_host(word, "", usual, refuse) for word in text.split(",")]


def from_file(path: str, usual: int | None, refuse: Callable[[str], NoReturn]) -> list[Host]:
    """Return the hosts of a file: on each line ``a``, ``a:4`` or ``a slots=4``; # begins a comment."""
    try:
        with open(path) as file:
            hosts = list(_lines(file.read(), usual, lambda why: refuse(f"--hostfile {path!r}: {why}")))
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"--hostfile {path!r} cannot be read: {error}")
    return hosts or refuse(f"--hostfile {path!r} names no host: lines such as `node1 slots=4` are expected")


def _lines(text: str, usual: int | None, refuse: Callable[[str], NoReturn]) -> Iterator[Host]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        slots = ""
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name not in ("slots", "max_slots", "max-slots"):
                refuse(f"{word!r} is not understood: lines such as `node1 slots=4` are expected")
            slots = value if name == "slots" else slots
        yield _host(words[0], slots, usual, refuse)


def _host(word: str, slots: str, usual: int | None, refuse: Callable[[str], NoReturn]) -> Host:
    found = _WORD.fullmatch(word)
    if found is None or word.startswith("-"):
        refuse(
            f"{word!r} is not a host: a name, and after a colon how many ranks it gets, are expected, such as node1:4"
        )
    count = slots or found[3] or usual
    if count is None:
        refuse(f"say how many ranks {word} gets: {word}:4, or -n 4 for each host that is named without a number")
    if not str(count).isdecimal() or int(count) < 1:
        refuse(f"{word!r} gets {count} ranks: 1 or more are expected")
    return Host(found[1] + found[2].strip("[]"), int(count))
