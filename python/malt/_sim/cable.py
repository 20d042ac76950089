"""What leads from a host to the switch: how fast it is, what gets lost, how long it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from malt._sim.delay import Delay
from malt._sim.programs import SimError, batch, call

SWITCH = "sw"
"""The bridge to which all cables lead."""

HOST_END = "eth0"
"""A cable's device in the host."""

_LOSS, _DELAY = 1, 2  # the filters of a port, in their order

# Classic BPF (linux/filter.h, linux/bpf_common.h) over a random 32-bit number: above
# the limit the next filter decides (TC_ACT_UNSPEC), else the packet is dropped
# (TC_ACT_SHOT). SKF_AD_OFF + SKF_AD_RANDOM is where such programs find one.
_DROP = "4,32 0 0 4294963256,37 0 1 {limit},6 0 0 4294967295,6 0 0 2"


def mac(number: int) -> str:
    """Return the Ethernet address of a host."""
    return f"02:00:00:00:00:{number:02x}"


class Traffic(NamedTuple):
    """What has passed a cable, in bytes of whole Ethernet frames."""

    sent: int
    """By the host."""
    received: int


class Cable:
    """The cable of one host; both directions of it work at once.

    Parameters
    ----------
    number : int
        The host's.
    enter : callable
        Moves a new process into the host's namespaces.
    delay : callable
        Returns the process that delays packets, started when it is first needed.
    """

    def __init__(self, number: int, enter: Callable[[], None], delay: Callable[[], Delay]) -> None:
        self.number = number
        self.port = f"p{number}"
        """Its device at the switch."""
        self._enter = enter
        self._delayer = delay
        self._rate: float | None = None
        self._loss = 0.0
        self._delay = 0.0
        self._bridged = False  # the device of the delay is at the switch

    def plug(self, namespace: str) -> list[str]:
        """Return what `ip` has to do to lay the cable between the switch and a network namespace."""
        return [
            f"link add {self.port} type veth peer name {HOST_END} address {mac(self.number)} netns {namespace}",
            f"link set {self.port} master {SWITCH} up",
        ]

    def attach(self) -> None:
        """Tell the switch who is at the other end, and make room for filters."""
        # Packets that are delayed come to the switch by another port, so it may not learn.
        batch(
            "bridge",
            [f"link set dev {self.port} learning off", f"fdb add {mac(self.number)} dev {self.port} master static"],
        )
        call("tc", "qdisc", "add", "dev", self.port, "clsact")

    # ------------------------------------------------------------------ its properties

    @property
    def rate(self) -> float | None:
        """Bits per second in each direction, counted as Ethernet frames; None: as fast as the machine can.

        Packets beyond the rate wait in a queue of 256 KB and 10 ms, and are dropped if there
        is no room, as by a real switch. Of 1500-byte packets TCP carries 95.6 % as payload.
        """
        return self._rate

    @rate.setter
    def rate(self, bits: float | None) -> None:
        if bits is not None and bits < 8000:
            raise SimError(f"a rate of {bits:g} bit/s is too low", "expected 8000 or more (8 kbit/s)")
        ends: list[tuple[str, Callable[[], None] | None]] = [(HOST_END, self._enter), (self.port, None)]
        for device, enter in ends:
            if bits is not None:
                # Two milliseconds at once, but two packets at least: it makes up for a processor that comes late.
                burst, queue = max(3100, int(bits / 4e3)), int(bits / 8e2) + (256 << 10)
                shape = f"tbf rate {int(bits)}bit burst {burst}b limit {queue}b"
                call("tc", "qdisc", "replace", "dev", device, "root", *shape.split(), enter=enter)
            elif self._rate is not None:
                call("tc", "qdisc", "del", "dev", device, "root", enter=enter)
        self._rate = bits

    @property
    def loss(self) -> float:
        """The part of the packets sent by the host that gets lost, from 0 to 1."""
        return self._loss

    @loss.setter
    def loss(self, part: float) -> None:
        if not 0 <= part <= 1:
            raise SimError(f"a loss of {part!r} is impossible", "expected a part of the packets, such as 0.01")
        if self._loss:
            self._filter("del", _LOSS)
        if part:
            program = _DROP.format(limit=min(round(part * 2**32), 2**32 - 1)).split(" ")
            self._filter("add", _LOSS, "bpf", "bytecode", " ".join(program), "direct-action")
        # Packets as they are on a cable: otherwise whole sends of 64 KB would pass, or get lost.
        together = 1 if part else 65535
        call("ip", "link", "set", HOST_END, "gso_max_segs", str(together), enter=self._enter)
        self._loss = part

    @property
    def delay(self) -> float:
        """Seconds that what the host sends is under way: a round trip between two hosts takes the sum of theirs."""
        return self._delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        if not 0 <= seconds <= 60:
            raise SimError(f"a delay of {seconds!r} s is not possible", "expected 0 to 60")
        device = Delay.device(self.number)
        if seconds:
            self._delayer().set(self.number, seconds)
            if not self._bridged:
                # Up last: what it got from the switch before would come back, as if the sender were behind it.
                here_only = "learning off flood off mcast_flood off bcast_flood off"
                port = [f"master {SWITCH}", f"type bridge_slave {here_only}", "up"]
                batch("ip", [f"link set {device} {how}" for how in port])
                self._bridged = True
        if seconds and not self._delay:
            self._filter("add", _DELAY, *f"u32 match u32 0 0 action mirred egress redirect dev {device}".split())
        elif self._delay and not seconds:
            self._filter("del", _DELAY)
        self._delay = seconds

    def _filter(self, do: str, order: int, *what: str) -> None:
        what = ("protocol", "all", *what) if what else ()
        call("tc", "filter", do, "dev", self.port, "ingress", "pref", str(order), *what)

    # ------------------------------------------------------------------ what has passed

    def traffic(self) -> Traffic:
        """Return what has passed up to now."""
        with open("/proc/net/dev") as file:
            counts = next(line.split()[1:] for line in file if line.split()[0] == f"{self.port}:")
        return Traffic(sent=int(counts[0]), received=int(counts[8]))

    def lost(self) -> int:
        """Return how many packets `loss` has dropped."""
        kinds = json.loads(call("tc", "-json", "-statistics", "qdisc", "show", "dev", self.port))
        return sum(kind["drops"] for kind in kinds if kind["kind"] == "clsact")
