"""The part of ``malt doctor -H`` that runs on each host: it listens, and measures the ways to other hosts.

Standard input and output are the connection (``remote``): a line of JSON asks, one frame answers. The end of
standard input ends the process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from malt._cli.remote import answer
from malt._ranks import addresses

PATIENCE = 2.0
"""Seconds in which a connection has to come about, and a large transfer has to begin to arrive."""

_PINGS = 10
_LARGE = 1 << 16
_MOST = 1 << 26
"""Bytes of the first and of the largest transfer."""

_LONG = 0.1
"""Seconds that the transfer takes by which the rate is reckoned."""

_LEAST_MTU = 576
_NEAR = 32
"""Bytes to which the MTU of a black hole is found."""

_SLOWEST = 20.0
"""Seconds after which a transfer is given up although parts of it arrive."""

_HEAD = struct.Struct("<I")
_SIOCGIFMTU = 0x8921  # linux/sockios.h
_IP_MTU, _IPV6_MTU = 14, 24  # linux/in.h, linux/in6.h


class _HoleError(Exception):
    """Nothing of a large transfer has been acknowledged."""


class Probe:
    """One host.

    Parameters
    ----------
    secret : str
        What each connection has to begin with, so that strangers measure nothing.
    interface : str
        The launcher's MALT_INTERFACE.
    """

    def __init__(self, secret: str, interface: str) -> None:
        self._secret = secret.encode()
        self._listening, self.store = addresses.listen({"MALT_INTERFACE": interface})
        for one in self._listening:
            threading.Thread(target=self._accept, args=(one,), daemon=True).start()

    def described(self) -> dict[str, Any]:
        """Return where this host listens, and of which interfaces the addresses are."""
        devices = addresses.devices()
        with socket.socket(type=socket.SOCK_DGRAM) as asked:
            return {
                "store": self.store,
                "interfaces": [
                    {
                        "name": devices.get(address, "lo"),
                        "address": address,
                        "mtu": _mtu_of(asked, devices.get(address, "lo")),
                        "public": addresses.public(address),
                    }
                    for address in (one.getsockname()[0] for one in self._listening)
                ],
            }

    # ------------------------------------------------------------------ the end that is measured

    def _accept(self, listener: socket.socket) -> None:
        while True:
            other, _ = listener.accept()
            threading.Thread(target=self._answer, args=(other,), daemon=True).start()

    def _answer(self, other: socket.socket) -> None:
        try:
            with other, other.makefile("rb") as heard:
                if heard.read(len(self._secret)) != self._secret:
                    return
                while head := heard.read(_HEAD.size):
                    left = min(_HEAD.unpack(head)[0], _MOST)
                    while left and (piece := heard.read(min(left, _LARGE))):
                        left -= len(piece)
                    other.sendall(b".")
        except (OSError, struct.error):  # it has gone away: that is for the other end to tell
            return

    # ------------------------------------------------------------------ the end that measures

    def measure(self, store: str) -> dict[str, Any]:
        """Return how each address of another host answers, and what the way to the first that does can carry."""
        places = [(host.strip("[]"), int(port)) for host, _, port in (at.rpartition(":") for at in store.split(","))]
        with ThreadPoolExecutor(len(places)) as pool:
            tried = list(pool.map(self._try, places))
        found: dict[str, Any] = {"tried": tried}
        for place, way in zip(places, tried, strict=True):
            if way["how"] == "ok":
                try:
                    found.update(self._carried(place))
                except OSError as error:
                    way.update(how="broken", why=os.strerror(error.errno) if error.errno else str(error))
                    continue
                break
        return found

    def _try(self, place: tuple[str, int]) -> dict[str, Any]:
        why = _connects(place)
        how = {
            None: "ok",
            errno.ETIMEDOUT: "dropped",
            errno.ECONNREFUSED: "refused",
            errno.ENETUNREACH: "no route",
        }.get(why, "rejected")
        way: dict[str, Any] = {"address": place[0], "port": place[1], "how": how}
        if how == "dropped":  # whether it is this port, or the host
            way["host_answers"] = _connects((place[0], 22)) in (None, errno.ECONNREFUSED)
        return way

    def _carried(self, place: tuple[str, int]) -> dict[str, Any]:
        with self._connect(place) as s:
            trips = [_transfer(s, 0) for _ in range(_PINGS)]
            found: dict[str, Any] = {"address": place[0], "round_trip": min(trips)}
            try:
                size, took = _LARGE, _transfer(s, _LARGE)
                while took < _LONG and size < _MOST:
                    size *= 2
                    took = _transfer(s, size)
                found["rate"] = size / max(took - found["round_trip"], 1e-9)
                found["mtu"] = _path_mtu(s)
            except _HoleError:
                found["hole"], found["mtu"] = True, self._widest(place, _path_mtu(s))
        return found

    def _connect(self, place: tuple[str, int], mtu: int | None = None) -> socket.socket:
        s = socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if mtu is not None:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mtu - (60 if ":" in place[0] else 40))
        s.settimeout(PATIENCE)
        s.connect(place)
        s.sendall(self._secret)
        return s

    def _widest(self, place: tuple[str, int], fails: int) -> int | None:
        """Return the MTU up to which packets arrive, by connections with smaller and smaller segments."""

        def arrives(mtu: int) -> bool:
            with self._connect(place, mtu) as s:
                try:
                    _transfer(s, _LARGE, PATIENCE / 2)
                except _HoleError:
                    return False
            return True

        if not arrives(_LEAST_MTU):
            return None
        good = _LEAST_MTU
        while fails - good > _NEAR:
            middle = (good + fails) // 2
            if arrives(middle):
                good = middle
            else:
                fails = middle
        return good


def _connects(place: tuple[str, int]) -> int | None:
    """Return why no connection comes about; None if one does."""
    with socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET) as s:
        s.settimeout(PATIENCE)
        try:
            s.connect(place)
        except TimeoutError:
            return errno.ETIMEDOUT
        except OSError as error:
            return error.errno
    return None


def _transfer(s: socket.socket, size: int, patience: float = PATIENCE) -> float:
    """Send so many bytes, and return the seconds until the other end has read them."""
    began = time.monotonic()
    s.settimeout(patience)
    data = memoryview(_HEAD.pack(size) + bytes(size))
    sent, answer = 0, b""
    while not answer:
        try:
            if sent < len(data):
                sent += s.send(data[sent:])
            else:
                answer = s.recv(1)
                if not answer:
                    raise ConnectionResetError(errno.ECONNRESET, "the other end has closed the connection")
        except TimeoutError:  # noqa: PERF203
            if _unacknowledged(s) >= sent:
                raise _HoleError from None
            if time.monotonic() - began > _SLOWEST:
                raise
    return time.monotonic() - began


def _unacknowledged(s: socket.socket) -> int:
    """Return the bytes that the other end's kernel has not acknowledged."""
    count: int = struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]
    return count


def _path_mtu(s: socket.socket) -> int:
    if s.family == socket.AF_INET6:
        return s.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)
    return s.getsockopt(socket.IPPROTO_IP, _IP_MTU)


def _mtu_of(asked: socket.socket, device: str) -> int:
    answer = fcntl.ioctl(asked, _SIOCGIFMTU, struct.pack("16si12x", device.encode(), 0))
    count: int = struct.unpack("16si12x", answer)[1]
    return count


def main() -> int:
    """Serve one ``malt doctor``."""
    probe: Probe | None = None

    def how(asked: dict[str, Any]) -> dict[str, Any]:
        nonlocal probe
        if asked["do"] == "measure":
            assert probe is not None
            return probe.measure(asked["store"])
        probe = Probe(asked["secret"], asked["interface"])
        return probe.described()

    answer(how)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads may wait for strangers
