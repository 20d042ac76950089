"""Where this host can be reached, and a socket there that listens."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import socket
import struct

__all__ = ["addresses", "join", "listen", "public"]

_SIOCGIFADDR = 0x8915  # linux/sockios.h

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

_PRIVATE = [
    ipaddress.ip_network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # RFC 1918, RFC 4193
        *("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10"),
    )
]
"""As in rdma/internal/handshake. The module's own is_private means more."""


def listen() -> tuple[socket.socket, str]:
    """Return a socket that listens at a free port, and where that is: ``address:port,…``."""
    found = addresses()
    if len(found) == 1:
        family = socket.AF_INET6 if ":" in found[0] else socket.AF_INET
        made = socket.create_server((found[0], 0), family=family, backlog=_BACKLOG)
    elif socket.has_dualstack_ipv6():
        made = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
    else:
        found = [address for address in found if ":" not in address]
        made = socket.create_server(("", 0), backlog=_BACKLOG)
    port = made.getsockname()[1]
    return made, ",".join(join(address, port) for address in found)


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


def addresses() -> list[str]:
    """Return the addresses by which another host may reach this one, IPv4 first.

    Those that lead to containers of this host, or to itself, only where there are no
    others. No name is resolved: that of the host itself often means 127.0.1.1.
    """
    found = [(_distance(device, address), address) for device, address in _ipv4() + _ipv6()]
    nearest = min((distance for distance, _ in found), default=0)
    return [address for distance, address in found if distance == nearest] or ["127.0.0.1"]


def _distance(device: str, address: str) -> int:
    return 2 if ipaddress.ip_address(address).is_loopback else int(device.startswith(_INSIDE))


def _ipv4() -> list[tuple[str, str]]:
    found = []
    with socket.socket(type=socket.SOCK_DGRAM) as asked:
        for _, device in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", device.encode()))
                found.append((device, socket.inet_ntoa(answer[20:24])))
    return found


def _ipv6() -> list[tuple[str, str]]:
    found = []
    with contextlib.suppress(OSError), open("/proc/net/if_inet6") as file:
        for line in file:
            digits, _, _, scope, _, device = line.split()
            if scope in ("00", "10"):  # global, host; others need to be told through which device
                found.append((device, str(ipaddress.IPv6Address(bytes.fromhex(digits)))))
    return found
