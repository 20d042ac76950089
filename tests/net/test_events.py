"""Links that are cut in one direction or in both, and healed; hosts that are powered off."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from itertools import permutations

import pytest
from net.talking import Program, Programs

from malt._sim import Network, SimError

COUNT = """
s = socket.socket(type=UDP)
s.bind(("", 5000))
sent, heard = 0, {}
say("up")
while True:
    sent += 1
    for other in sys.argv[1:]:
        try:
            s.sendto(b"%d" % sent, (other, 5000))
        except OSError:
            pass  # a route that leads nowhere
    until = time.monotonic() + 0.01
    while (left := until - time.monotonic()) > 0:
        ready = select.select([s, sys.stdin], [], [], left)[0]
        if s in ready:
            data, sender = s.recvfrom(64)
            heard[sender[0]] = int(data)
        if sys.stdin in ready:
            told()
            say([sent, heard])
"""
"""Sends numbers to all others; says how far it has come, and which number it has last heard from each of them."""


def passing(net: Network, programs: list[Program], expected: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the links that packets of `COUNT` pass from now on, as soon as the expected ones are among them."""

    def ask() -> list[tuple[int, dict[str, int]]]:
        for program in programs:
            program.tell("say")
        return [program.hear() for program in programs]

    before = [sent for sent, _ in ask()]
    while True:
        now = ask()
        links = {
            (host.number, other)
            for other, (_, heard) in enumerate(now)
            for host in net.hosts
            if heard.get(host.address, 0) > before[host.number]
        }
        if expected <= links and all(sent > old + 20 for (sent, _), old in zip(now, before, strict=True)):
            return links


ALL = set(permutations(range(3), 2))


@pytest.mark.parametrize(
    ("event", "heal", "lost"),
    [
        ("cut:h0->h1", "heal:h0-h1", {(0, 1)}),
        ("cut:h0-h1", "heal:h1-h0", {(0, 1), (1, 0)}),
        ("cut:h1", "heal:h1", {(0, 1), (1, 0), (1, 2), (2, 1)}),
        ("cut=reject:h0->h1", "heal:h0->h1", {(0, 1)}),
        ("cut=reject:h1", "heal:h1", {(0, 1), (1, 0), (1, 2), (2, 1)}),
        ("cut=blackhole:h2->h0", "heal:h0", {(2, 0)}),
        ("cut=address:h1", "heal:h1", {(0, 1), (1, 0), (1, 2), (2, 1)}),
        ("cut=unplug:h1", "heal:h1", {(0, 1), (1, 0), (1, 2), (2, 1)}),
    ],
)
def test_what_passes(event: str, heal: str, lost: set[tuple[int, int]]) -> None:
    with Network(3, delay=0.001) as net, Programs() as started:
        programs = [started.start(host, COUNT, *(h.address for h in net.hosts if h is not host)) for host in net.hosts]
        assert [program.hear() for program in programs] == ["up"] * 3
        assert passing(net, programs, ALL) == ALL
        for _ in range(2):  # after it is healed it can be cut again
            net.apply(event)
            assert passing(net, programs, ALL - lost) == ALL - lost
            net.apply(heal)
            assert passing(net, programs, ALL) == ALL


def test_what_is_cut_in_part_is_healed_in_part() -> None:
    with Network(3) as net, Programs() as started:
        programs = [started.start(host, COUNT, *(h.address for h in net.hosts if h is not host)) for host in net.hosts]
        assert [program.hear() for program in programs] == ["up"] * 3
        net.apply("cut:h1->h0")
        net.apply("cut=blackhole:h1->h0")
        net.apply("cut:h1")
        net.apply("heal:h0->h1")
        expected = ALL - {(1, 0), (1, 2), (2, 1)}
        assert passing(net, programs, expected) == expected
        net.apply("heal:h1")
        net.apply("heal:h1")
        assert passing(net, programs, ALL) == ALL


# The second of its processes has left the first one's session, as a daemon does.
SERVER = """
s = socket.create_server(("", 5000))
say(os.getpid())
c, _ = s.accept()
if os.fork() == 0:
    os.setsid()
    while True:
        c.sendall(b"x")
        time.sleep(0.001)
while c.recv(100):
    pass
"""

CLIENT = """
c = socket.create_connection(("h1", 5000))
c.sendall(b"here")
say(c.recv(1).decode())
c.setblocking(False)
while True:
    told()
    try:
        while data := c.recv(1 << 16):
            pass
        say("closed")
    except BlockingIOError:
        say("open")
    except OSError as error:
        say(type(error).__name__)
"""


def on(net: Network, number: int) -> list[int]:
    """Return the processes of a host."""
    own = os.readlink(net.hosts[number].namespaces["net"])
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if os.readlink(f"/proc/{pid}/ns/net") == own:
                found.append(int(pid))
    return found


def killed(net: Network, started: Programs, off: bool) -> str:
    """Return what a client sees of its connection once all processes of the server's host are gone."""
    pid = (server := started.start(net.hosts[1], SERVER)).hear()
    client = started.start(net.hosts[0], CLIENT)
    assert client.hear() == "x"
    assert pid in on(net, 1)
    assert len(on(net, 1)) == 2
    if off:
        net.apply("off:h1")
    else:
        for process in on(net, 1):
            os.kill(process, signal.SIGKILL)
    while on(net, 1):
        pass
    sent, arrived = net.hosts[1].cable.traffic().sent, net.hosts[0].cable.traffic().received
    client.tell("look")
    seen = client.hear()
    assert isinstance(seen, str)
    assert server._process.wait() == -signal.SIGKILL
    if off:
        assert net.hosts[1].cable.traffic().sent == sent
        assert net.hosts[0].cable.traffic().received == arrived
    return seen


def test_a_host_that_is_powered_off_does_not_say_goodbye() -> None:
    with Network(2) as net, Programs() as started:
        assert killed(net, started, off=False) != "open"
        assert killed(net, started, off=True) == "open"
        net.apply("heal:h1")  # it is on again, and its kernel still has the connection
        net.hosts[1].reset()
        assert killed(net, started, off=False) != "open"


def test_an_event_that_fails_says_why() -> None:
    with Network(2) as net:
        net.hosts[1].administer("ip", "link del eth0")
        with pytest.raises(SimError, match='Cannot find device "p1"'):
            net.apply("cut:h0->h1")
