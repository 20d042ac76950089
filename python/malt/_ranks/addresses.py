"""Where this host can be reached, and a socket there that listens."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
from collections.abc import Mapping
from fnmatch import fnmatchcase

from .._guide import lines

_IFF_UP = 1  # net/if.h

_BYTES = {int(socket.AF_INET): (4, 4), int(socket.AF_INET6): (8, 16)}
"""Where an address is in its sockaddr, and how long it is."""

_INSIDE = (
    "docker",
    "br-",
    "veth",
    "virbr",
    "vnet",
    "lxc",
    "lxd",
    "podman",
    "cni",
    "cali",
    "flannel",
    "kube-",
    "nodelocaldns",
)
"""How devices are called that lead to containers and virtual machines of this host."""

_BACKLOG = 1024

_MOST = 8
"""Addresses at which a host listens."""

_ATTEMPTS = 20

_PRIVATE = [
    ipaddress.ip_network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # RFC 1918, RFC 4193
        *("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10"),
    )
]
"""As in rdma/internal/handshake. The module's own is_private means more."""


def listen(env: Mapping[str, str] = os.environ) -> tuple[list[socket.socket], str]:
    """Return sockets that listen at a free port of each address, and where that is: ``address:port,…``.

    Parameters
    ----------
    env : mapping
        MALT_INTERFACE in it says at which addresses, as for ranks.

    Raises
    ------
    ValueError
        MALT_INTERFACE leaves none.
    """
    found = addresses(env.get("MALT_INTERFACE", ""))[:_MOST]
    for left in reversed(range(_ATTEMPTS)):
        made: list[socket.socket] = []
        try:
            for address in found:
                port = made[0].getsockname()[1] if made else 0
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                made.append(socket.create_server((address, port), family=family, backlog=_BACKLOG))
            return made, ",".join(join(address, made[0].getsockname()[1]) for address in found)
        except OSError:  # the port is taken at another address
            for one in made:
                one.close()
            if not left:
                raise
    raise AssertionError


def join(address: str, port: int) -> str:
    """Return an address and a port in one word.

    Examples
    --------
    >>> join("10.0.0.1", 80), join("fd00::1", 80)
    ('10.0.0.1:80', '[fd00::1]:80')
    """
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def public(address: str) -> bool:
    """Tell whether what goes to or from an address is encrypted unless MALT_ENCRYPT says otherwise.

    Examples
    --------
    >>> public("10.0.0.1"), public("fd00::1"), public("203.0.113.7"), public("100.64.0.1")
    (False, False, True, True)
    """
    return not any(ipaddress.ip_address(address) in network for network in _PRIVATE)


def devices() -> dict[str, str]:
    """Return the network device of each address of this host."""
    return {address: device for device, address in _own()}


def addresses(interface: str = "") -> list[str]:
    """Return the addresses by which another host may reach this one, IPv4 first.

    Addresses that lead to containers of this host, or to itself, come only where there are no
    others, or where `interface`, as MALT_INTERFACE, names them. No name is resolved: that of the
    host itself often means 127.0.1.1.

    Raises
    ------
    ValueError
        `interface` leaves none.
    """
    own = _own()
    found = [(_distance(device, address), address) for device, address in own if _allowed(device, address, interface)]
    if interface and not found:
        have = ", ".join(f"{device} {address}" for device, address in own)
        raise ValueError(lines(f"MALT_INTERFACE={interface} leaves no address of this host", f"it has {have}"))
    named = bool(interface) and not interface.startswith("^")
    nearest = min((distance for distance, _ in found), default=0)
    return [address for distance, address in found if named or distance == nearest] or ["127.0.0.1"]


def _allowed(device: str, address: str, interface: str) -> bool:
    """Tell whether MALT_INTERFACE takes an address (rdma/rendezvous/meeting has the grammar)."""
    entries = interface.removeprefix("^")
    if not entries:
        return True
    return any(_means(entry.strip(), device, address) for entry in entries.split(",")) != interface.startswith("^")


def _means(entry: str, device: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return fnmatchcase(device, entry)


def _distance(device: str, address: str) -> int:
    return 2 if ipaddress.ip_address(address).is_loopback else int(device.startswith(_INSIDE))


class _Listed(ctypes.Structure):
    """An entry of the list that getifaddrs makes (man 3 getifaddrs)."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("device", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
        ("address", ctypes.c_void_p),
    )


def _own() -> list[tuple[str, str]]:
    """Return device and address of all that this host has, as the library lists them; IPv4 first.

    Addresses that need to be told through which device are left out.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    first = ctypes.c_void_p()
    if libc.getifaddrs(ctypes.byref(first)):
        raise OSError(ctypes.get_errno(), "the network interfaces cannot be listed")
    found = []
    at = first.value
    while at:
        one = _Listed.from_address(at)
        at = one.next
        family = ctypes.c_ushort.from_address(one.address).value if one.address and one.flags & _IFF_UP else None
        if family in _BYTES:
            start, size = _BYTES[family]
            address = ipaddress.ip_address(ctypes.string_at(one.address + start, size))
            if address.version == 4 or not address.is_link_local:
                found.append((one.device.decode().partition(":")[0], str(address)))  # eth0:1 is a label
    libc.freeifaddrs(first)
    return sorted(found, key=lambda one: ":" in one[1])
