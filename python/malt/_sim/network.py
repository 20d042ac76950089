"""Hosts, and the switch that joins them."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

from malt._sim.cable import SWITCH
from malt._sim.cuts import change
from malt._sim.delay import Delay
from malt._sim.events import Cut, Event, parse
from malt._sim.host import Host
from malt._sim.programs import SimError, batch

MOST = 250
"""Hosts that one network can have."""


class Network:
    """Hosts with names, addresses and cables, all joined by one switch.

    Parameters
    ----------
    hosts : int
        How many hosts to make.
    rate, loss, delay : optional
        Those of every cable; see `Cable`. Each can be changed at any time.

    Raises
    ------
    SimError
        It cannot be made; says what is missing and where to get it.

    Notes
    -----
    A context manager. Only in a process that has called `isolate`, and one at a time.

    Examples
    --------
    >>> with Network(2, rate=1e9, delay=0.005) as net:  # doctest: +SKIP
    ...     net.hosts[0].start(["python", "server.py"])
    ...     net.hosts[1].start(["python", "client.py", net.hosts[0].name])
    ...     net.apply("cut:h0-h1")
    """

    def __init__(self, hosts: int, *, rate: float | None = None, loss: float = 0.0, delay: float = 0.0) -> None:
        if not 1 <= hosts <= MOST:
            raise SimError(f"a network of {hosts} hosts cannot be made", f"expected 1 to {MOST}")
        if [device for _, device in socket.if_nameindex() if device != "lo"]:
            raise SimError("this process is in a network that is in use", do="Call malt._sim.isolate() first.")
        self.hosts: list[Host] = []
        self._delay: Delay | None = None
        self._cuts: frozenset[Cut] = frozenset()
        with ExitStack() as unfinished:
            unfinished.callback(self.close)
            self._make(hosts)
            for host in self.hosts:
                if rate is not None:
                    host.cable.rate = rate
                if loss:
                    host.cable.loss = loss
                if delay:
                    host.cable.delay = delay
            unfinished.pop_all()

    def _make(self, count: int) -> None:
        for number in range(count):
            self.hosts.append(Host(number, count, self._delayer))
        with suppress(FileNotFoundError), open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as file:
            file.write("1")  # a switch has no addresses
        lines = [
            f"link add {SWITCH} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set {SWITCH} up",
        ]
        for host in self.hosts:
            lines += host.cable.plug(host.namespaces["net"])
        batch("ip", lines)
        for host in self.hosts:
            host.cable.attach()
            host.connect()

    def _delayer(self) -> Delay:
        if self._delay is None:
            self._delay = Delay(len(self.hosts))
        return self._delay

    def apply(self, event: Event | str) -> None:
        """Let something happen to hosts or links, now, such as ``cut:h0-h1``; `events` has the words for it.

        To cut what is cut already, or heal what is whole, does nothing. A host that was powered off can be
        healed: it is on again, without processes.
        """
        if isinstance(event, str):
            event = parse(event)
        cuts = event.outcome(self._cuts, len(self.hosts))
        change(self.hosts, made=cuts - self._cuts, healed=self._cuts - cuts)
        self._cuts = cuts
        if event.what == "off":  # the cable first: its kernel says no goodbye for its processes
            self.hosts[event.hosts[0]].kill()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take it down. Processes that are still on a host keep it, but without a network."""
        if self._delay is not None:
            self._delay.close()
            self._delay = None
        ours = {SWITCH, *(host.cable.port for host in self.hosts)}
        batch("ip", [f"link del {device}" for _, device in socket.if_nameindex() if device in ours])
        for host in self.hosts:
            host.close()
        self.hosts = []
