"""A cable is as fast, as slow and as lossy as asked, and can be cut.

What is asserted of times are bounds that follow from what was asked, with room for a
loaded machine; nothing here says how fast anything is.
"""

from __future__ import annotations

import time

import pytest
from net.talking import ECHO, FLOOD, UDP_ECHO, Program, Programs

from malt._sim import Host, Network, SimError

PING = """
s = socket.socket(type=UDP)
s.settimeout(5)
while True:
    times = []
    for _ in range(told()):
        start = time.monotonic()
        s.sendto(b"ping", (sys.argv[1], 5000))
        s.recv(16)
        times.append(time.monotonic() - start)
    say(min(times))
"""

COUNTED = """
s = socket.socket(type=UDP)
while True:
    for _ in range(told()):
        s.sendto(b"x", (sys.argv[1], 5001))
    say("sent")
"""

ARRIVED = """
names, values = [line.split()[1:] for line in open("/proc/net/snmp") if line.startswith("Udp:")]
udp = dict(zip(names, map(int, values)))
say(udp["InDatagrams"] + udp["NoPorts"])
"""

RETRANSMITTED = """
names, values = [line.split()[1:] for line in open("/proc/net/snmp") if line.startswith("Tcp:")]
say(dict(zip(names, map(int, values)))["RetransSegs"])
"""

TRANSFER = """
c = socket.create_connection((sys.argv[1], 5000))
sent = os.urandom(1 << 20)
got = b""
c.setblocking(False)
while len(got) < len(sent):
    readable, writable, _ = select.select([c], [c] if at < len(sent) else [], [])
    if readable:
        got += c.recv(1 << 16)
    if writable:
        at += c.send(sent[at:at + (1 << 16)])
say(got == sent)
""".replace("got =", "at = 0\ngot =", 1)


WINDOW = 0.25
"""Seconds over which a rate is looked at."""


def carried(host: Host, enough: float, received: bool = False) -> tuple[float, float]:
    """Return the most bits per second that the cable of a host carries, at least and at most.

    Looks until it may be `enough`, for up to five seconds: on a loaded machine the
    sender does not always run, nor does this process when it has looked at the clock.
    """

    def look() -> tuple[float, int, float]:
        return time.monotonic(), host.cable.traffic()[received], time.monotonic()

    start = look()[1]
    while look()[1] < start + 2 * burst(host.cable.rate or 0):  # it flows, and the first burst is through
        time.sleep(0.01)
    surely = perhaps = 0.0
    for _ in range(20):
        first = look()
        time.sleep(WINDOW)
        last = look()
        bits = (last[1] - first[1]) * 8
        surely, perhaps = max(surely, bits / (last[2] - first[0])), max(perhaps, bits / (last[0] - first[2]))
        if perhaps >= enough:
            break
    return surely, perhaps


def burst(rate: float) -> float:
    """Return the bytes that may pass at once, with a packet under way."""
    return max(3100, rate / 4e3) + 1500


def shaped(host: Host, rate: float, received: bool = False) -> bool:
    surely, perhaps = carried(host, 0.9 * rate, received)
    return perhaps >= 0.9 * rate and surely <= 1.02 * rate + burst(rate) * 8 / WINDOW


@pytest.mark.parametrize("rate", [5e6, 40e6])
def test_rate_of_what_is_sent(rate: float) -> None:
    with Network(2, rate=rate) as net, Programs() as programs:
        programs.start(net.hosts[0], FLOOD, "h1").hear()
        assert shaped(net.hosts[0], rate)
        net.hosts[0].cable.rate = rate / 4
        assert shaped(net.hosts[0], rate / 4)
        net.hosts[0].cable.rate = net.hosts[1].cable.rate = None
        assert carried(net.hosts[0], 1.5 * rate)[1] >= 1.5 * rate


def test_rate_of_what_is_received_from_several() -> None:
    with Network(3, rate=40e6) as net, Programs() as programs:
        for host in net.hosts[1:]:
            programs.start(host, FLOOD, "h0").hear()
        assert shaped(net.hosts[0], 40e6, received=True)


def ping(pinger: Program, times: int = 3) -> float:
    pinger.tell(times)
    quickest = pinger.hear()
    assert isinstance(quickest, float)
    return quickest


def takes(pinger: Program, least: float, most: float) -> bool:
    """Tell whether the quickest of some pings takes so long, there and back; a busy machine delays most of them."""
    quickest = ping(pinger)
    for _ in range(9):
        if quickest >= most:
            quickest = min(quickest, ping(pinger))
    return least <= quickest < most


def test_delay() -> None:
    with Network(3, delay=0.05) as net, Programs() as programs:
        a, b, c = net.hosts
        programs.start(a, UDP_ECHO).hear()
        pinger, other = (programs.start(host, PING, a.name) for host in (b, c))
        assert takes(pinger, 0.1, 0.15)
        b.cable.delay = 0.1
        assert takes(pinger, 0.15, 0.2)
        assert takes(other, 0.1, 0.15)
        a.cable.delay = b.cable.delay = 0
        assert takes(pinger, 0, 0.05)
        assert takes(other, 0, 0.1)
        a.cable.delay = 0.05
        assert ping(pinger) >= 0.05


def test_a_delay_may_begin_while_the_host_talks() -> None:
    """To all others: the switch must not take what is delayed for a host that has moved."""
    shout = """
    s = socket.socket(type=UDP)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    say("up")
    while True:
        s.sendto(b"all", ("10.0.255.255", 5002))
    """
    with Network(2) as net, Programs() as programs:
        a, b = net.hosts
        programs.start(a, UDP_ECHO).hear()
        pinger = programs.start(b, PING, a.name)
        with programs.start(b, shout) as shouting:
            shouting.hear()
            b.cable.delay = 1e-6  # so that what should not come back would do so at once
        b.cable.delay = 0.01
        assert ping(pinger) >= 0.01


def test_what_is_delayed_stays_in_order() -> None:
    """Also when the delay is shortened while packets are under way."""
    receive = """
    s = socket.socket(type=UDP)
    s.bind(("", 5001))
    say("up")
    say([int(s.recv(16)) for _ in range(20)])
    """
    send = """
    s = socket.socket(type=UDP)
    for i in (0, 10):
        for n in range(i, i + 10):
            s.sendto(b"%d" % n, ("h0", 5001))
        say("sent")
        told()
    """
    with Network(2, delay=0.2) as net, Programs() as programs:
        receiver = programs.start(net.hosts[0], receive)
        receiver.hear()
        sender = programs.start(net.hosts[1], send)
        sender.hear()
        net.hosts[1].cable.delay = 0.001
        sender.tell("go on")
        assert receiver.hear() == list(range(20))


def test_loss() -> None:
    with Network(2) as net, Programs() as programs:
        a, b = net.hosts
        programs.start(a, UDP_ECHO).hear()
        ping(programs.start(b, PING, a.name))  # from now on each knows the other's Ethernet address
        sender = programs.start(b, COUNTED, a.name)

        def arrived(sent: int) -> int:
            before = programs.start(a, ARRIVED).hear()
            sender.tell(sent)
            sender.hear()
            count = programs.start(a, ARRIVED).hear() - before
            assert isinstance(count, int)
            return count

        assert arrived(1000) == 1000
        b.cable.loss = 0.2
        lost = 4000 - arrived(4000)
        assert lost <= b.cable.lost() <= lost + 20  # the hosts also say a word or two of their own
        assert 0.2 - 0.032 < lost / 4000 < 0.2 + 0.032  # five standard deviations
        b.cable.loss = 1
        assert arrived(1000) == 0
        b.cable.loss = 0
        assert arrived(1000) == 1000


def test_tcp_makes_good_what_was_lost() -> None:
    """Of single packets of a send, not only of whole ones."""
    with Network(2, loss=0.05, delay=0.0005) as net, Programs() as programs:
        a, b = net.hosts
        programs.start(a, ECHO).hear()
        assert programs.start(b, TRANSFER, a.name).hear() is True
        assert b.cable.lost() >= 10  # a megabyte is 720 packets
        assert programs.start(b, RETRANSMITTED).hear() >= 10


TALK = """
c = socket.create_connection((sys.argv[1], 5000))
while True:
    c.sendall(told().encode())
    say("sent")
    say(c.recv(100).decode())
"""


def test_a_cut_cable_carries_nothing_until_it_is_whole_again() -> None:
    with Network(2) as net, Programs() as programs:
        a, b = net.hosts
        programs.start(a, ECHO).hear()
        client = programs.start(b, TALK, a.name)
        flood = programs.start(b, FLOOD, a.name)
        flood.hear()
        client.tell("one")
        assert [client.hear(), client.hear()] == ["sent", "one"]
        net.apply("cut=unplug:h0")
        sent, received = b.cable.traffic().sent, a.cable.traffic().received
        client.tell("two")
        assert client.hear() == "sent"
        while b.cable.traffic().sent < sent + 100_000:
            time.sleep(0.01)
        assert a.cable.traffic().received == received
        net.apply("heal:h0")
        assert client.hear() == "two"


def test_a_reset_is_an_error_at_both_ends() -> None:
    server = """
    s = socket.create_server(("", 5000))
    say("up")
    c, _ = s.accept()
    try:
        say(c.recv(10).decode())
    except OSError as error:
        say(type(error).__name__)
    """
    client = """
    c = socket.create_connection(("h0", 5000))
    say("connected")
    try:
        say(c.recv(10).decode())
    except OSError as error:
        say(type(error).__name__)
    """
    with Network(2) as net, Programs() as programs:
        one = programs.start(net.hosts[0], server)
        one.hear()
        other = programs.start(net.hosts[1], client)
        other.hear()
        assert net.hosts[0].reset() >= 1
        assert one.hear() == "ConnectionAbortedError"
        assert other.hear() == "ConnectionResetError"


def test_what_is_no_loss_or_delay_is_refused() -> None:
    with Network(1) as net:
        for name, value in (("loss", 1.5), ("loss", -0.1), ("delay", -1), ("rate", 0)):
            with pytest.raises(SimError, match=name):
                setattr(net.hosts[0].cable, name, value)


def test_the_end_of_what_delays_is_an_error() -> None:
    with Network(1, delay=0.01) as net:
        assert net._delay is not None
        net._delay._process.kill()
        with pytest.raises(SimError, match="has ended, with exit code -9"):
            net.hosts[0].cable.delay = 0.02


ALL_TALK = """
count, me = int(sys.argv[1]), int(sys.argv[2])
s = socket.socket(type=UDP)
s.bind(("", 5000))
say("up")
told()
for other in range(count):
    s.sendto(b"?", (f"h{other}", 5000))
s.settimeout(5)
heard = set()
try:
    while len(heard) < count:
        heard.add(s.recvfrom(9)[1])
except TimeoutError:
    pass
say(len(heard))
"""


def test_more_hosts_talk_than_the_neighbour_table_of_a_machine_holds() -> None:
    count = 40
    with Network(count) as net, Programs() as started:
        all_of_them = [started.start(host, ALL_TALK, str(count), str(host.number)) for host in net.hosts]
        assert [program.hear() for program in all_of_them] == ["up"] * count
        for program in all_of_them:
            program.tell("go")
        assert [program.hear() for program in all_of_them] == [count] * count
