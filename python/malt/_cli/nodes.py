"""``malt run --nodes``: the part of a job that one ``malt run`` starts, where there is one on each machine."""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

from malt._cli.options import Refuse, refuse_given, see_voters, settings, unfit, whole
from malt._cli.token import long_enough
from malt._ranks.launch import numbered
from malt._ranks.room import MOST

_SECRET = (
    "ranks of several machines need a secret, so that nobody else joins",
    "`malt token` prints one",
    "Set MALT_TOKEN to it on every machine, or write it to a file, and pass --token-file FILE.",
)


class Part(NamedTuple):
    """The ranks that are started here."""

    size: int
    """How many there are in all."""
    numbers: range
    """The ranks that are started here."""
    store: str | None = None
    """Where all of them meet; None: on this machine."""
    token: str | None = None
    witnesses: int = 0
    """How many machines have no rank, and a vote."""


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
        raise unfit(
            f"{text!r} is not a place to meet",
            "expected a name or address of machine 0 and a free port there",
            "Such as node0:29500 or [fd00::1]:29500.",
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
        others, do = ("node_rank", "store", "token_file"), "Pass the number of machines: --nodes 2."
        refuse_given(options, others, refuse, "goes with --nodes", "", do)
        return Part(counts[0], range(counts[0]))
    nodes = options.nodes or len(counts)
    if len(counts) == 1:
        counts = counts * nodes
    if len(counts) != nodes:
        refuse(f"-n {','.join(map(str, counts))} is for {len(counts)} machines", f"--nodes says {nodes}")
    here = options.node_rank
    if here is None or not 0 <= here < nodes:
        refuse(
            f"the number of this machine, of {nodes}, is missing or wrong",
            do=f"Pass --node-rank 0 to --node-rank {nodes - 1}.",
        )
    if options.store is None:
        refuse(
            "the place where all ranks meet is missing",
            "it is a free port of machine 0, the same on each machine",
            "Pass --store node0:29500.",
        )
    if sum(counts) > MOST:
        refuse(f"{sum(counts)} ranks on {nodes} machines are too many", f"a job has at most {MOST}")
    see_voters(counts, {**os.environ, **settings(options)}, refuse)
    return Part(sum(counts), numbered(counts)[here], options.store, _token(options, refuse), counts.count(0))


def _token(options: argparse.Namespace, refuse: Refuse) -> str:
    if options.token_file is None:
        return long_enough(os.environ.get("MALT_TOKEN") or refuse(*_SECRET), "MALT_TOKEN", refuse)
    try:
        with open(options.token_file) as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"--token-file {options.token_file!r} cannot be read", str(error))
    if not token or any(c.isspace() for c in token):
        refuse(f"--token-file {options.token_file!r} holds no secret", "expected one word, as `malt token` prints it")
    return long_enough(token, f"the word in --token-file {options.token_file!r}", refuse)
