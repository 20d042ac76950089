"""Where two hosts do not reach each other, the job ends on those, too, that reach both."""

from __future__ import annotations

import json
import subprocess

import pytest
from launching import Stopwatch
from net.talking import Program, Programs

from malt._sim import Host, Network

RANK = """
rank, size, store = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = "2"
import malt, numpy as np
malt.init(rank=rank, size=size, store=store, token="a-secret-of-enough-letters", timeout=30)
v = malt.Vector(np.full(1000, float(rank)), start="own")
v.sync()
say("up")
try:
    while True:
        v.sync()
except malt.PeerError as error:
    say([time.monotonic(), error.rank, error.kind, str(error)])
told()
sys.exit(1)
"""

STRANGER = "02:00:00:ff:ff:ff"
"""An Ethernet address that no host has."""


def cut(one: Host, other: Host) -> None:
    """Have what two hosts send each other go to nobody, and what they send others arrive."""
    for here, there in ((one, other), (other, one)):
        for address in (there.address, there.address6):
            route = here.start(["ip", "-o", "route", "get", address], stdout=subprocess.PIPE, text=True)
            words = route.communicate()[0].split()
            device = words[words.index("dev") + 1]
            assert here.start(["ip", "neigh", "replace", address, "lladdr", STRANGER, "dev", device]).wait() == 0


def started(net: Network, programs: Programs) -> list[Program]:
    store = f"{net.hosts[0].name}:29500"
    return [
        programs.start(host, RANK, json.dumps([rank, len(net.hosts), store])) for rank, host in enumerate(net.hosts)
    ]


@pytest.mark.parametrize("hosts", [3, 4])
def test_all_agree_on_who_is_dead(hosts: int) -> None:
    with Network(hosts) as net, Programs() as programs:
        ranks = started(net, programs)
        assert [rank.hear() for rank in ranks] == ["up"] * hosts
        cut(net.hosts[1], net.hosts[2])
        # Ranks 1 and 2 live on and say nothing: the others have only the news.
        heard = [rank.hear() for rank in ranks]
        first = min(at for at, *_ in heard)
        for rank, (at, dead, kind, sentence) in enumerate(heard):
            assert at - first < 1.5, (rank, heard)  # a second, on a machine that does other things
            assert (dead, kind) == (1 if rank == 2 else 2, "unreachable"), sentence
            if rank not in (1, 2):
                assert "cannot reach each other" in sentence


IDLE = """
rank, size, store = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = "2"
import malt
malt.init(rank=rank, size=size, store=store, token="a-secret-of-enough-letters", timeout=30)
malt.barrier()
say("up")
told()
try:
    malt.barrier()
except malt.PeerError as error:
    say([error.rank, error.kind])
told()
os._exit(1)
"""

LIMIT, SLACK = 2.0, 1.0
"""Seconds of MALT_UNREACHABLE, and after these by which all know."""


def test_all_agree_where_an_idle_connection_is_cut_one_way() -> None:
    with Network(4) as net, Programs() as programs:
        store = f"{net.hosts[0].name}:29500"
        ranks = [programs.start(host, IDLE, json.dumps([host.number, 4, store])) for host in net.hosts]
        assert [rank.hear() for rank in ranks] == ["up"] * 4
        for rank in ranks[:3]:
            rank.tell("wait for rank 3")
        net.apply("cut:h2->h1")  # what rank 2 sends is lost, what rank 1 sends is not
        with Stopwatch() as since:
            heard = [rank.hear() for rank in ranks[:3]]
        assert since.seconds < LIMIT + SLACK, heard
        ranks[3].tell("come")  # which has computed meanwhile
        heard.append(ranks[3].hear())
        # Rank 2, whoever has told it, names the one that it does not reach.
        assert heard == [[1 if rank == 2 else 2, "unreachable"] for rank in range(4)], heard
