"""What ``malt run -H`` is to do, and on which hosts, as they are named on the command line or in a file."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from malt._cli.options import Refuse, refuse_given, see_voters, settings
from malt._cli.token import long_enough
from malt._job.identity import INSIDE, RANK_VARIABLES
from malt._ranks.room import MOST

HERE = ("localhost", "127.0.0.1", "::1")
"""Names for which no ssh is needed."""


class Host(NamedTuple):
    """A host, and how many ranks it gets."""

    name: str
    """What ssh is told, such as ``user@node1``."""
    ranks: int
    """0: it has a witness, which votes."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this mode."""
    made = parser.add_argument_group("on several machines, by ssh")
    made.add_argument(
        "-H", "--hosts", metavar="HOST:RANKS,...", help="the hosts, with the number of ranks of each; 0: it only votes"
    )
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


def none_given(options: argparse.Namespace, refuse: Refuse) -> None:
    """See that the options of this mode are not used in another."""
    refuse_given(options, ("ssh", "python", "env", "chdir"), refuse, "goes with -H or --hostfile", "these name hosts")


def task(options: argparse.Namespace, program: Sequence[str], refuse: Refuse) -> dict[str, Any]:
    """Return what the agents are told: the program, its folder, variables that all ranks get, the token."""
    others = ("nodes", "node_rank", "store", "token_file")
    refuse_given(options, others, refuse, "is for jobs without ssh", "-H and --hostfile do not need it")
    if not program:
        refuse(
            "nothing to run",
            "expected a script, -m MODULE, or -- PROGRAM",
            "Such as `malt run -H a:4,b:4 train.py`.",
        )
    token = long_enough(os.environ.get("MALT_TOKEN") or os.urandom(16).hex(), "MALT_TOKEN", refuse)
    env = _environment(options, refuse)
    return {"program": program, "folder": options.chdir or os.getcwd(), "env": env, "token": token}


def _environment(options: argparse.Namespace, refuse: Refuse) -> dict[str, str]:
    ours = (*RANK_VARIABLES, INSIDE, "MALT_REPORT")
    env = {name: value for name, value in os.environ.items() if name.startswith("MALT_") and name not in ours}
    env.update(settings(options))
    for word in options.env or ():
        name, given, value = word.partition("=")
        if not name:
            refuse(f"-x {word!r} names no variable", "expected NAME or NAME=VALUE")
        if not given and name not in os.environ:
            refuse(f"-x {name}", "it is not set here", f"Set one: -x {name}=VALUE.")
        env[name] = value if given else os.environ[name]
    return env


def named(options: argparse.Namespace, refuse: Refuse) -> list[Host]:
    """Return the hosts that the options name."""
    if options.hosts is not None and options.hostfile is not None:
        refuse("-H and --hostfile both name hosts", do="Write one of them.")
    if options.ranks is not None and len(options.ranks) > 1:
        refuse(
            "-n has several numbers, and -H or --hostfile names hosts",
            do="Write the numbers with the hosts: -H a:4,b:2.",
        )
    usual = options.ranks[0] if options.ranks else None
    if options.hosts is not None:
        hosts = from_words(options.hosts, usual, refuse)
    else:
        hosts = from_file(options.hostfile, usual, refuse)
    counts = [host.ranks for host in hosts]
    see_voters(counts, {**os.environ, **settings(options)}, refuse)
    if usual is not None and usual not in (sum(counts), *counts):
        refuse(
            f"-n {usual}, but the hosts get {sum(counts)} ranks", do="Leave -n out, or change the numbers of the hosts."
        )
    if sum(counts) > MOST:
        refuse(f"{sum(counts)} ranks are too many", f"a job has at most {MOST}")
    return hosts


# user@name:ranks, where a name is one of the DNS, an alias of ssh's configuration, or an address.
_WORD = re.compile(r"((?:[^\s@:,\[\]]+@)?)(\[[0-9a-fA-F:.%\w]+\]|[^\s@:,\[\]]+)(?::(\d+))?")


def from_words(text: str, usual: int | None, refuse: Refuse) -> list[Host]:
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


def from_file(path: str, usual: int | None, refuse: Refuse) -> list[Host]:
    """Return the hosts of a file: on each line ``a``, ``a:4`` or ``a slots=4``; # begins a comment."""
    try:
        with open(path) as file:
            hosts = list(
                _lines(file.read(), usual, lambda what, **more: refuse(f"--hostfile {path!r}: {what}", **more))
            )
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"--hostfile {path!r} cannot be read", str(error))
    return hosts or refuse(f"--hostfile {path!r} names no host", "expected lines such as `node1 slots=4`")


def _lines(text: str, usual: int | None, refuse: Refuse) -> Iterator[Host]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        slots = ""
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name not in ("slots", "max_slots", "max-slots"):
                refuse(f"{word!r} is not understood", where="expected lines such as `node1 slots=4`")
            slots = value if name == "slots" else slots
        yield _host(words[0], slots, usual, refuse)


def _host(word: str, slots: str, usual: int | None, refuse: Refuse) -> Host:
    found = _WORD.fullmatch(word)
    if found is None or word.startswith("-"):
        refuse(f"{word!r} is not a host", where="expected a name, a colon and a number of ranks, such as node1:4")
    count = slots or found[3] or usual
    if count is None:
        refuse(
            f"the number of ranks of {word} is missing", do=f"Write {word}:4, or -n 4 for each host that has no number."
        )
    if not str(count).isdecimal():
        refuse(f"{word!r} gets {count} ranks", where="expected a number")
    return Host(found[1] + found[2].strip("[]"), int(count))
