"""Who takes part over a network, and how the ranks of each are started, one on each host."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Sequence

from malt._ranks.launch import meeting, program_environment

from ..environments import has_torch, pingpong
from ..systems import AGAIN, Command, Environment, System

PORTS = itertools.count(29500)
"""A job's ranks meet at a port of its own: that of the job before may still be closing."""


def systems(addresses: Sequence[str]) -> list[System]:
    """Return MALT, the bare socket, iperf3 and gloo, for hosts of these addresses; without those that are missing."""

    def malt(ranks: int) -> list[tuple[Command, Environment]]:
        job = meet(ranks, addresses)
        return [(_rank("malt"), {**job, "MALT_RANK": str(r)}) for r in range(ranks)]

    def other(name: str, **more: str) -> System:
        def start(ranks: int) -> list[tuple[Command, Environment]]:
            return [(_rank(name), {"BENCH_RANK": str(r), "BENCH_HOST": addresses[1], **more}) for r in range(ranks)]

        ops = {"bare": {"stream", "put-seen", "cpu"}, "iperf": {"stream", "cpu"}, "gloo": {"sync", "put-seen", "busy"}}
        return System({"bare": "limit", "iperf": "iperf3"}.get(name, name), start, frozenset(ops[name]))

    own = frozenset({"stream", "put-seen", "lands", "cpu", "step", "busy", "sync"})
    found = [System("malt", malt, own), System(AGAIN, malt, own), other("bare", BENCH_PINGPONG=pingpong())]
    if shutil.which("iperf3"):
        found.append(other("iperf"))
    if has_torch():
        found.append(other("gloo"))
    return found


def meet(ranks: int, addresses: Sequence[str]) -> Environment:
    """Return the environment of the ranks of a new job of MALT on these hosts, less what is each rank's own."""
    store = f"{addresses[0]}:{next(PORTS)}"
    return program_environment(ranks) | meeting(ranks, store, os.urandom(16).hex())


def _rank(name: str) -> Command:
    return [sys.executable, "-m", f"bench.ranks.{name}_rank"]
