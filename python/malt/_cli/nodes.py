"""``malt run --nodes``: the part of a job that one ``malt run`` starts, where there is one on each machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from malt._cli.options import whole
from malt._cli.token import LEAST, SHORT
from malt._room import MOST

Refuse = Callable[[str], NoReturn]

_SECRET = """\
ranks of several machines need a secret that they share, so that nobody else joins. Make one with `malt token` and set
MALT_TOKEN to it on every machine, or put it into a file that only you can read, and say --token-file FILE"""


class Part(NamedTuple):
    """The ranks that are started here."""

    size: int
    """How many there are in all."""
    numbers: range
    """The ranks that are started here."""
    store: str | None = None
    """Where all of them meet; None: on this machine."""
    token: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this mode."""
    made = parser.add_argument_group("without ssh, by a `malt run` on each")
    made.add_argument("--nodes", type=_nodes, metavar="NODES", help="number of machines")
    made.add_argument("--node-rank", type=int, metavar="NUMBER", help="the number of this machine: 0, 1, ...")
    made.add_argument(
        "--store", type=_store, metavar="HOST:PORT", help="a free port of machine 0, where the ranks meet"
    )
    made.add_argument("--token-file", metavar="FILE", help="a file with the job's token; default: MALT_TOKEN")


def _nodes(text: str) -> int:
    return whole(text, 1, MOST, "number of machines", "--nodes 2")


def _store(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16 or (":" in host and not host.startswith("[")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a place to meet: a name or address of machine 0 and a port that is free there are "
            "expected, such as node0:29500 or [fd00::1]:29500"
        )
    return text


def part(options: argparse.Namespace, refuse: Refuse) -> Part:
    """Return what is started here.

    Parameters
    ----------
    options : argparse.Namespace
        Of ``malt run``; ``ranks`` are numbers of ranks, of all machines or of each.
    refuse : callable
        Raises an error with the sentence that it gets.
    """
    counts: list[int] = options.ranks
    if options.nodes is None and len(counts) == 1:
        for name in ("node_rank", "store", "token_file"):
            if getattr(options, name) is not None:
                refuse(f"--{name.replace('_', '-')} goes with --nodes, the number of machines")
        return Part(counts[0], range(counts[0]))
    nodes = options.nodes or len(counts)
    if len(counts) == 1:
        counts = counts * nodes
    if len(counts) != nodes:
        refuse(f"-n {','.join(map(str, counts))} is for {len(counts)} machines, and --nodes {nodes} says otherwise")
    here = options.node_rank
    if here is None or not 0 <= here < nodes:
        refuse(f"say which of the {nodes} machines this is: --node-rank 0 to --node-rank {nodes - 1}")
    if options.store is None:
        refuse("say where all meet, the same on each machine: --store HOST:PORT, of machine 0, such as node0:29500")
    if sum(counts) > MOST:
        refuse(f"{sum(counts)} ranks on {nodes} machines are too many: a job has at most {MOST}")
    first = sum(counts[:here])
    return Part(sum(counts), range(first, first + counts[here]), options.store, _token(options, refuse))


def _token(options: argparse.Namespace, refuse: Refuse) -> str:
    if options.token_file is None:
        token = os.environ.get("MALT_TOKEN") or refuse(_SECRET)
        return token if len(token) >= LEAST else refuse(f"MALT_TOKEN {SHORT}")
    try:
        with open(options.token_file) as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"--token-file {options.token_file!r} cannot be read: {error}")
    if not token or any(c.isspace() for c in token):
        refuse(f"--token-file {options.token_file!r} holds no secret: one word is expected, as `malt token` prints it")
    if len(token) < LEAST:
        refuse(f"the word in --token-file {options.token_file!r} {SHORT}")
    return token
