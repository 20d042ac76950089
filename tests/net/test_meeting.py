"""Ranks of several hosts meet, by whatever address leads to rank 0, and tell what is in the way."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable

import pytest
from net.talking import Program, Programs

from malt._sim import Host, Network

RANK = """
import malt
rank, size, store, seconds, unreachable = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = str(unreachable)
try:
    malt.init(rank=rank, size=size, store=store, token="a-secret-of-its-own", timeout=seconds)
    say([malt.allreduce(float(rank), op="sum"), malt.local_rank()])
except Exception as error:
    say([type(error).__name__, str(error)])
    os._exit(0)  # without a traceback
told()
"""


def command(host: Host, *words: str) -> str:
    """Run a program on a host."""
    return subprocess.run(words, preexec_fn=host.enter, check=True, capture_output=True, text=True).stdout


def rank(
    started: Programs, host: Host, number: int, size: int, store: str, seconds: float = 30, unreachable: float = 5
) -> Program:
    """Start a rank on a host."""
    return started.start(host, RANK, json.dumps([number, size, store, seconds, unreachable]))


def listening(host: Host) -> set[str]:
    """Return the addresses at which somebody listens on a host."""
    lines = command(host, "ss", "--no-header", "--tcp", "--listening", "--numeric").splitlines()
    return {line.split()[3].rpartition(":")[0] for line in lines}


def bridge(host: Host) -> None:
    """Give a host what Docker does: a bridge that has the same address everywhere."""
    command(host, "ip", "link", "add", "docker0", "type", "bridge")
    command(host, "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
    command(host, "ip", "link", "set", "docker0", "up")


@pytest.mark.parametrize(
    ("store", "prefixes"),
    # A name leads to both addresses: who calls the first before rank 0 listens, and the other after it, comes there.
    [(lambda host: f"{host.name}:29500", ("10.0.", "[fd00:")), (lambda host: f"[{host.address6}]:29500", ("[fd00:",))],
    ids=["name", "IPv6"],
)
def test_hosts_meet_and_listen_only_where_others_come(store: Callable[[Host], str], prefixes: tuple[str, ...]) -> None:
    with Network(3) as net, Programs() as started:
        for host in net.hosts:
            bridge(host)
        places = [0, 1, 1, 2]  # rank 0 comes last
        ranks = [rank(started, net.hosts[places[n]], n, 4, store(net.hosts[0])) for n in (1, 2, 3, 0)]
        assert [r.hear() for r in ranks] == [[6.0, 0], [6.0, 1], [6.0, 0], [6.0, 0]]
        for host in net.hosts:
            at = listening(host)
            assert at, host.name
            assert all(address.startswith(prefixes) for address in at), (host.name, at)
        for r in ranks:
            r.tell("end")


def test_rank_zero_whose_own_name_is_a_loopback_address() -> None:
    with Network(2) as net, Programs() as started:
        # As Debian has it, on its own host.
        command(net.hosts[0], "sh", "-c", "echo 127.0.1.1 h0 > /etc/hosts")
        ranks = [rank(started, net.hosts[n], n, 2, "h0:29500") for n in range(2)]
        assert [r.hear() for r in ranks] == [[1.0, 0], [1.0, 0]]
        for r in ranks:
            r.tell("end")
        # And where that has been copied to another one.
        command(net.hosts[1], "sh", "-c", "echo 127.0.1.1 h0 > /etc/hosts")
        kind, text = rank(started, net.hosts[1], 1, 2, "h0:29500", seconds=0.5).hear()
        assert kind == "TimeoutError"
        assert "h0 (127.0.1.1) leads to this host itself" in text
        assert "/etc/hosts" in text


def connections(host: Host) -> list[str]:
    """Return what the kernel of rank 0's host knows of each connection with its store."""
    return command(host, "ss", "-tiHO", "state", "established", "sport", "=", "29500").splitlines()


def welcomed(connection: str) -> bool:
    """Tell whether a rank has been told more than the 92 bytes of a handshake, namely who is missing."""
    found = re.search(r"bytes_acked:(\d+)", connection)
    return found is not None and int(found[1]) > 92


def silence(connection: str) -> float:
    """Return for how many seconds nothing has come from the other end of a connection."""
    found = re.search(r"lastack:(\d+)", connection)
    return int(found[1]) / 1000 if found else 0.0


def test_lost_keep_alive_does_not_end_a_meeting() -> None:
    with Network(2) as net, Programs() as started:
        ranks = [rank(started, net.hosts[n], n, 3, "h0:29500", unreachable=2) for n in range(2)]
        while not any(map(welcomed, connections(net.hosts[0]))):
            pass
        net.hosts[1].cable.loss = 1
        while max(map(silence, connections(net.hosts[0])), default=3) < 3:
            pass
        net.hosts[1].cable.loss = 0
        ranks.append(rank(started, net.hosts[1], 2, 3, "h0:29500"))
        assert [r.hear()[0] for r in ranks] == [3.0] * 3
        for r in ranks:
            r.tell("end")


def test_host_that_is_cut_off_while_it_waits_is_named() -> None:
    with Network(2) as net, Programs() as started:
        limits = [2, 6]  # the first one counts as 5 s, as long as ranks meet
        ranks = [rank(started, net.hosts[n], n, 3, "h0:29500", unreachable=limits[n]) for n in range(2)]
        while not any(map(welcomed, connections(net.hosts[0]))):  # rank 2 never comes
            pass
        net.apply("cut=unplug:h1")
        for number, (r, limit) in enumerate(zip(ranks, ["5s", "6s"], strict=True)):
            kind, text = r.hear()
            assert kind == "PeerError"
            there = net.hosts[1 - number].address
            assert f"rank {1 - number} is dead: its host has not answered for {limit} at {there}" in text
            assert "MALT_UNREACHABLE" in text


TIMED = RANK.replace("import malt\n", "import malt\nbegan = time.monotonic()\n").replace(
    "malt.local_rank()]", "time.monotonic() - began]"
)


def test_a_rank_whose_first_packets_get_lost_is_not_late() -> None:
    took = [met_late()]
    while took[-1] >= 3.0 and len(took) < 4:  # again where the machine was busy with something else
        took.append(met_late())
    assert took[-1] < 3.0, took


def met_late() -> float:
    """Return how long the ranks take to meet."""
    with Network(2) as net, Programs() as started:
        net.hosts[0].administer(  # three get lost: the kernel sends again after 1, 3 and 7 s
            "nft",
            "table inet t { chain c { type filter hook input priority 0;",
            "tcp dport 29500 tcp flags syn quota until 200 bytes drop; }; }",
        )
        store = f"{net.hosts[0].address}:29500"
        ranks = [started.start(host, TIMED, json.dumps([host.number, 2, store, 15, 5])) for host in net.hosts]
        heard = [one.hear() for one in ranks]
        assert [total for total, _ in heard] == [1.0, 1.0]
        latest = max(seconds for _, seconds in heard)
        assert isinstance(latest, float)
        return latest
