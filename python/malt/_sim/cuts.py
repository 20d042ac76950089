"""How the cuts of `events` are made and healed, by programs that an administrator has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from malt._sim.cable import mac
from malt._sim.events import Cut
from malt._sim.host import Host
from malt._sim.programs import batch


class Order(NamedTuple):
    """Lines for a program."""

    host: Host | None
    """Where it runs; None: at the switch."""
    program: str
    lines: Sequence[str]


# Classic BPF, as in cable.py, for packets from an Ethernet address, of which bytes 2 to 5 are compared.
_DROP_FROM = "4,32 0 0 8,21 0 1 {mac},6 0 0 2,6 0 0 4294967295"


def _drop(source: Host, target: Host, cut: bool) -> Order:
    """Drop at the switch what goes out to one host and comes from the other, without a sign to either of them."""
    program = _DROP_FROM.format(mac=int(mac(source.number).replace(":", "")[-8:], 16))
    what = f"protocol all bpf bytecode '{program}' direct-action" if cut else ""
    do = "add" if cut else "del"
    return Order(None, "tc", [f"filter {do} dev {target.cable.port} egress pref {source.number + 1} {what}"])


def _reject(source: Host, target: Host, cut: bool) -> Order:
    """Have a firewall reject what comes in. ICMP passes, since its rejections from the other end come by that."""
    table = f"table inet from_{source.name}"
    if not cut:
        return Order(target, "nft", [f"delete {table}"])
    rejected = "meta l4proto != { icmp, icmpv6 } reject with icmpx type port-unreachable"
    lines = [f"{kind} saddr {address} {rejected}" for kind, address in source.addresses.items()]
    return Order(target, "nft", [f"{table} {{ chain input {{ type filter hook input priority 0;", *lines, "}", "}"])


def _blackhole(source: Host, target: Host, cut: bool) -> Order:
    do = "add" if cut else "del"
    return Order(source, "ip", [f"route {do} blackhole {address}" for address in target.addresses.values()])


def _unplug(host: Host, _: Host, cut: bool) -> Order:
    """Take the cable away: the host's end sees that (no carrier)."""
    return Order(None, "ip", [f"link set {host.cable.port} {'down' if cut else 'up'}"])


def _address(host: Host, _: Host, cut: bool) -> Order:
    return Order(host, "ip", host.addressed("del" if cut else "add"))


_WAYS: Mapping[str, Callable[[Host, Host, bool], Order]] = {
    "drop": _drop,
    "reject": _reject,
    "blackhole": _blackhole,
    "unplug": _unplug,
    "address": _address,
}


def change(hosts: Sequence[Host], made: Iterable[Cut], healed: Iterable[Cut]) -> None:
    """Make some cuts and heal others, with one program for each place."""
    lines: dict[tuple[Host | None, str], list[str]] = {}
    for cuts, cut in ((healed, False), (made, True)):
        for source, target, way in cuts:
            order = _WAYS[way](hosts[source], hosts[target], cut)
            lines.setdefault((order.host, order.program), []).extend(order.lines)
    for (host, program), asked in lines.items():
        if host is None:
            batch(program, asked)
        else:
            host.administer(program, *asked)
