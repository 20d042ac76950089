"""Where two hosts do not reach each other, the job ends on those, too, that reach both."""

from __future__ import annotations

import json
import subprocess

import pytest
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
            if rank != 2:
                assert (dead, kind) == (2, "unreachable"), sentence
            if rank not in (1, 2):
                assert "do not reach each other" in sentence
