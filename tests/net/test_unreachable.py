"""However a host becomes unreachable, both ends know within MALT_UNREACHABLE and a second."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from net.talking import Program, Programs

from malt._sim import Host, Network

LIMIT = 2.0
"""Seconds of silence, the least that MALT_UNREACHABLE may be."""

SLACK = 1.0
"""Seconds after the limit by which both ends have to know."""

RANK = """
rank, store, limit = json.loads(sys.argv[1])
if limit != 5:
    os.environ["MALT_UNREACHABLE"] = str(limit)
import malt, numpy as np
malt.init(rank=rank, size=2, store=store, token="a-secret-of-its-own", timeout=30)
v = malt.Vector(np.full(1 << 16, float(rank)), start="own")
v.sync()
say("up")
told()
try:
    while True:
        v.sync()
except malt.PeerError as error:
    say([time.clock_gettime(time.CLOCK_MONOTONIC), error.rank, error.kind, str(error)])
os._exit(0)
"""

Cut = Callable[[Host, Host], None]


def interface_down(a: Host, b: Host) -> None:
    b.administer("ip", "link set eth0 down")


def route(kind: str) -> Cut:
    def cut(a: Host, b: Host) -> None:
        for host, other in [(a, b), (b, a)]:
            lines = [f"route add {kind} {other.address}/32", f"route add {kind} {other.address6}/128"]
            host.administer("ip", *lines)

    return cut


def neighbour_lost(a: Host, b: Host) -> None:
    """Somebody else's Ethernet address takes the place of the host's own."""
    for address in (b.address, b.address6):
        a.administer("ip", f"neighbour replace {address} lladdr 02:00:00:00:ff:ff dev eth0 nud permanent")


def rejected(how: str, both: bool = True) -> Cut:
    def cut(a: Host, b: Host) -> None:
        for host, other in [(b, a), (a, b)][: 1 + both]:
            host.administer(
                "nft",
                "table inet filter { chain input { type filter hook input priority 0;",
                f"ip saddr {other.address} meta l4proto tcp reject with {how}",
                f"ip6 saddr {other.address6} meta l4proto tcp reject with {how}",
                "}",
                "}",
            )

    return cut


def only_new(at: int) -> Cut:
    """Nothing comes to one of the two but what opens a connection."""

    def cut(*pair: Host) -> None:
        other = pair[1 - at]
        pair[at].administer(
            "nft",
            "table inet filter { chain input { type filter hook input priority 0;",
            f"ip saddr {other.address} tcp flags & (syn | ack) != syn drop",
            f"ip6 saddr {other.address6} tcp flags & (syn | ack) != syn drop",
            "}",
            "}",
        )

    return cut


class Away(NamedTuple):
    """One way to become unreachable, and what both ends say of it."""

    cut: Cut | str
    """An event of the network, of hosts a and b, if it is a text."""
    says: str = ""
    at_one_end: bool = False
    """Only the first says it."""
    limit: float = LIMIT
    kind: str = "unreachable"
    """What it is at the end that says it."""


AWAY = {
    "dropped": Away("cut:{a}-{b}", "it is off, or the network is cut"),
    "dropped, with the default limit": Away("cut:{a}-{b}", "it is off, or the network is cut", limit=5),
    "dropped one way": Away("cut:{a}->{b}"),
    "unplugged": Away("cut=unplug:{b}"),
    "interface down": Away(interface_down),
    "address gone": Away("cut=address:{b}"),
    "no route": Away(route("throw"), "this host has no route to it"),
    "unreachable route": Away(route("unreachable"), "no route leads to it"),
    "blackhole route": Away("cut=blackhole:{a}-{b}", "a route of this host discards packets to it"),
    "blackhole route at one end": Away("cut=blackhole:{a}->{b}", "discards packets to it", True),
    "prohibit route": Away(route("prohibit"), "a route or a firewall of this host forbids"),
    "neighbour lost": Away(neighbour_lost),
    "rejected": Away("cut=reject:{a}-{b}", "a firewall rejects connections to it"),
    "rejected by an administrator": Away(rejected("icmpx type admin-prohibited"), "no route leads to it"),
    "only new connections come to the first": Away(only_new(0)),
    "only new connections come to the second": Away(only_new(1)),
    "rejected at one end": Away("cut=reject:{a}->{b}"),
    "reset at one end": Away(
        rejected("tcp reset", both=False), "or a firewall resets connections to it", True, kind="ended"
    ),
}


def start(started: Programs, pair: list[Host], limit: float) -> list[Program]:
    store = f"{pair[0].name}:29500"
    return [started.start(host, RANK, json.dumps([rank, store, limit])) for rank, host in enumerate(pair)]


def known(job: list[Program], pair: list[Host], cut: float, away: Away) -> list[str]:
    """Return what is wrong with what the ranks of a job say of the cut."""
    wrong = []
    for number, rank in enumerate(job):
        at, other, kind, text = rank.hear()
        there = pair[1 - number]
        felt = not (number and away.at_one_end)
        expected = 1 - number, away.kind if felt else "unreachable"
        if (other, kind) != expected or (felt and away.says not in text):
            wrong.append(f"rank {number} says that rank {other} is {kind}: {text}")
        if at - cut > away.limit + SLACK:
            wrong.append(f"rank {number} knows after {at - cut:.2f} s: {text}")
        if there.address not in text and there.address6 not in text:
            wrong.append(f"rank {number} does not name the address: {text}")
    return wrong


def always_answers(host: Host) -> None:
    """Have the kernel of a host send all ICMP messages, and not one a second, which a lost packet may take."""
    limits = "/proc/sys/net/ipv4/icmp_ratelimit /proc/sys/net/ipv6/icmp/ratelimit"
    subprocess.run(["sh", "-c", f"echo 0 | tee {limits}"], preexec_fn=host.enter, check=True, stdout=subprocess.DEVNULL)


def tried(ways: Mapping[str, Away]) -> dict[str, list[str]]:
    """Return what is wrong, by the way to become unreachable, of which each has a pair of hosts."""
    with Network(2 * len(ways)) as net, Programs() as started:
        for host in net.hosts:
            always_answers(host)
        pairs = [net.hosts[2 * i : 2 * i + 2] for i in range(len(ways))]
        jobs = [start(started, pair, away.limit) for pair, away in zip(pairs, ways.values(), strict=True)]
        assert [rank.hear() for job in jobs for rank in job] == ["up"] * 2 * len(ways)
        cuts = []
        for pair, job, away in zip(pairs, jobs, ways.values(), strict=True):
            for rank in job:
                rank.tell("go")
            if isinstance(away.cut, str):
                net.apply(away.cut.format(a=pair[0].name, b=pair[1].name))
            else:
                away.cut(*pair)
            cuts.append(time.clock_gettime(time.CLOCK_MONOTONIC))
        found = {
            name: known(job, pair, cut, away)
            for (name, away), pair, job, cut in zip(ways.items(), pairs, jobs, cuts, strict=True)
        }
    return {name: wrong for name, wrong in found.items() if wrong}


def test_every_way_to_become_unreachable() -> None:
    late = tried(AWAY)
    wrong = late and tried({name: AWAY[name] for name in late})  # on a less busy machine
    assert not wrong, json.dumps(wrong, indent=1)
