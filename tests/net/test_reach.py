"""A host that cannot be reached is known to be away in time, and one that is back in time is not."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from launching import Stopwatch
from net.talking import Program, Programs

from malt._sim import Host, Network
from malt._sim.programs import call

LIMIT = 3.0
"""Seconds of silence; see MALT_UNREACHABLE."""

RANK = """
rank, store, limit, size = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = str(limit)
import malt, numpy as np
malt.init(rank=rank, size=2, store=store, token="a-secret-of-its-own", timeout=15)
v = malt.Vector(np.full(size, float(rank)), start="own")
v.sync()
say("up")
try:
    while not select.select([sys.stdin], [], [], 0)[0]:
        v.sync()
    malt.barrier()
    say("alive")
    malt.barrier()
except malt.PeerError as error:
    say(str(error))
os._exit(0)
"""


def ranks(hosts: Sequence[Host], started: Programs, size: int = 1 << 16) -> list[Program]:
    """Start a rank on each of two hosts; both sync without end, one array of so many numbers."""
    store = f"{hosts[0].name}:29500"
    return [started.start(host, RANK, json.dumps([rank, store, LIMIT, size])) for rank, host in enumerate(hosts)]


def test_silence_counts_from_the_last_sign_whatever_becomes_of_the_connection() -> None:
    with Network(6) as net, Programs() as started:
        pairs = [net.hosts[at : at + 2] for at in (0, 2, 4)]
        jobs = [ranks(pair, started) for pair in pairs]
        assert [rank.hear() for job in jobs for rank in job] == ["up"] * 6
        for _, host in pairs:
            net.apply(f"cut=unplug:{host.name}")
        with Stopwatch() as since:
            time.sleep(LIMIT * 0.7)
            for host in (pairs[1][0], pairs[2][1]):  # at one end and at the other
                assert host.reset() > 0
            for job in jobs:
                for number, rank in enumerate(job):
                    assert f"rank {1 - number} is dead: its host has not answered for 3s" in rank.hear()
        # It would be more than 1.6 of it, did silence begin anew with a reset.
        assert since.seconds < 1.4 * LIMIT
        for host in net.hosts:  # the kernel tries no more to send what nobody takes
            assert call("ss", "--no-header", "--tcp", "state", "fin-wait-1", enter=host._enter) == ""


def test_a_host_that_is_back_in_time_is_alive() -> None:
    away, said = back_after(LIMIT * 0.75)
    for _ in range(4):
        if away < LIMIT * 0.8:
            break
        away, said = back_after(LIMIT * 0.75)  # again where the machine was busy with something else
    assert said == ["alive"] * 4, away


def back_after(seconds: float) -> tuple[float, list[str]]:
    """Return for how long two hosts were away, on a busy machine longer than asked, and what all ranks say of it."""
    with Network(4) as net, Programs() as started:
        pairs = [net.hosts[:2], net.hosts[2:]]
        jobs = [ranks(pair, started, size) for pair, size in zip(pairs, (1, 1 << 20), strict=True)]
        assert [rank.hear() for job in jobs for rank in job] == ["up"] * 4
        began = time.monotonic()
        for _, host in pairs:
            host.cable.loss = 1  # without what a new cable takes until hosts know each other's addresses
        time.sleep(seconds)
        for _, host in pairs:
            host.cable.loss = 0
        away = time.monotonic() - began
        for job in jobs:
            for rank in job:
                rank.tell("enough")
        return away, [rank.hear() for job in jobs for rank in job]


def test_a_connection_that_a_firewall_forgets_is_made_again() -> None:
    with Network(4) as net, Programs() as started:
        pairs = [net.hosts[:2], net.hosts[2:]]
        jobs = [ranks(pair, started) for pair in pairs]
        assert [rank.hear() for job in jobs for rank in job] == ["up"] * 4
        for pair, ends in zip(pairs, (1, 2), strict=True):  # one way is cut, and both
            for host in pair[:ends]:
                forget(host)
        for job in jobs:
            for rank in job:
                rank.tell("enough")
        assert [rank.hear() for job in jobs for rank in job] == ["alive"] * 4


def forget(host: Host) -> None:
    """Drop what comes to a host of the connections that it has; new ones work."""
    lines = call("ss", "--no-header", "--tcp", "--numeric", "state", "established", enter=host._enter).splitlines()
    ports = [[end.rsplit(":", 1)[1] for end in line.split()[2:4]] for line in lines]
    assert ports
    host.administer(
        "nft",
        "table inet filter { chain input { type filter hook input priority 0;",
        *(f"tcp dport {own} tcp sport {other} drop" for own, other in ports),
        "}",
        "}",
    )
