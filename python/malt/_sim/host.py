"""One host: namespaces in which a process finds itself on a machine of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import product
from typing import Any

from malt._sim import kernel
from malt._sim.cable import HOST_END, Cable, mac
from malt._sim.delay import Delay
from malt._sim.programs import SimError, batch, call

_KINDS = ("ipc", "uts", "net", "mnt")
"""What a host has of its own. Processes, users and files are those of the machine."""

_SHM = "/dev/shm"

ASKING = 16
"""Hosts up to which each asks for the Ethernet addresses of the others, as real ones do.

The kernel keeps the answers of all its namespaces in one table of 1,024 (gc_thresh3), which those
of 33 hosts fill. Permanent entries do not count.
"""


def name(number: int) -> str:
    """Return the name of a host."""
    return f"h{number}"


def address(number: int) -> str:
    """Return the IPv4 address of a host."""
    return f"10.0.{number}.1"


def address6(number: int) -> str:
    """Return the IPv6 address of a host."""
    return f"fd00::{number:x}:1"


class Host:
    """One host of a network; `Network` makes them.

    Parameters
    ----------
    number : int
        Its number, from 0.
    count : int
        How many hosts there are.
    delay : callable
        See `Cable`.
    """

    def __init__(self, number: int, count: int, delay: Callable[[], Delay]) -> None:
        self.number = number
        self.count = count
        self.name = name(number)
        self.address = address(number)
        self.address6 = address6(number)
        self._user = kernel.own_user()
        self._namespaces = _namespaces(self.name, count)
        self.cable = Cable(number, self._enter, delay)
        """What leads to the switch: rate, loss and delay."""

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The paths of its namespaces, by kind, as long as it is open."""
        return {kind: f"/proc/{os.getpid()}/fd/{fd}" for kind, fd in zip(_KINDS, self._namespaces, strict=True)}

    @property
    def addresses(self) -> Mapping[str, str]:
        """Its addresses, by protocol: ``ip``, and ``ip6`` where the machine has that."""
        return {"ip": self.address, **({"ip6": self.address6} if os.path.exists("/proc/net/if_inet6") else {})}

    def addressed(self, do: str) -> list[str]:
        """Return what `ip` has to do on the host to ``add`` its addresses, or to ``del`` them."""
        lines = [f"address {do} {self.address}/16 dev {HOST_END}"]
        if "ip6" in self.addresses:
            # Without the second in which the host would ask whether another has the address.
            lines.append(f"address {do} {self.address6}/64 dev {HOST_END}{' nodad' if do == 'add' else ''}")
        return lines

    def connect(self) -> None:
        """Give its end of the cable, which has been laid, its addresses."""
        lines = ["link set lo up", *self.addressed("add"), f"link set {HOST_END} up"]
        if self.count > ASKING:
            others = [number for number in range(self.count) if number != self.number]
            for kind, other in product((address, address6)[: len(self.addresses)], others):
                lines.append(f"neighbour add {kind(other)} lladdr {mac(other)} nud permanent dev {HOST_END}")
        batch("ip", lines, enter=self._enter)

    # ------------------------------------------------------------------ processes in it

    def _enter(self) -> None:
        """Move this process, which has just been forked, into the host, as the one who rules there."""
        here = os.getcwd()
        for fd in self._namespaces:
            kernel.setns(fd)
        os.chdir(here)

    def enter(self) -> None:
        """Move this process, which has just been forked, into the host, as the user who called for all this."""
        self._enter()
        if self._user is not None:
            kernel.become(*self._user)

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program on the host.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        **options
            Those of `subprocess.Popen`, but for `preexec_fn`.
        """
        return subprocess.Popen(argv, preexec_fn=self.enter, **options)

    def administer(self, program: str, *lines: str) -> None:
        """Run lines of ``ip``, ``tc``, ``bridge`` or ``nft`` on the host, as its root.

        Whatever an administrator can do to a host's network is done here: take its address or
        its interface away, add a route that leads nowhere, set up a firewall.
        """
        if program == "nft":
            call("nft", "-f", "-", enter=self._enter, text="".join(f"{line}\n" for line in lines))
        else:
            batch(program, lines, enter=self._enter)

    def reset(self) -> int:
        """Reset all TCP connections of the host: both ends get an error. Returns how many there were."""
        closed = call("ss", "--no-header", "--tcp", "--kill", "state", "connected", enter=self._enter)
        return len(closed.splitlines())

    def kill(self) -> None:
        """Kill all of its processes, also such as another program has brought here."""
        own = {os.readlink(path) for path in self.namespaces.values()}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # when the first one dies, no other runs that would notice it
            reached: set[int] = set()
            while new := _processes(own) - reached:  # until none of them has forked meanwhile
                for pid in new:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                reached |= new

    def close(self) -> None:
        """Let go of it; it ends with its last process."""
        for fd in self._namespaces:
            os.close(fd)
        self._namespaces = []


def _namespaces(of: str, count: int) -> list[int]:
    """Return descriptors of new namespaces, furnished for the host of that name."""
    hear, tell = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.write(tell, _furnish(of, count).encode() or b"\n")
            signal.pause()
        os._exit(1)
    os.close(tell)
    try:
        with open(hear, "rb", buffering=0) as answer:
            said = answer.read(4096)
        if said != b"\n":
            raise SimError(f"host {of} cannot be made", said.decode(errors="replace"))
        return [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in _KINDS]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _furnish(of: str, count: int) -> str:
    """Make namespaces for this process; returns what went wrong, if anything did."""
    try:
        kernel.unshare(kernel.NEWNET | kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC)
        socket.sethostname(of)
        for which in ("all", "default"):  # some machines have none, or have switched it off
            with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "w") as file:
                file.write("0")
        # Memory that processes share by name is private to a host. It also holds, for
        # a moment, the files that are put in the place of others.
        kernel.mount("shm", _SHM, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
        _replace("/etc/hosts", _hosts(count))
        _replace("/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
    except OSError as error:
        return str(error)
    return ""


def _replace(path: str, text: str) -> None:
    """Let a file have another content, on this host only."""
    other = os.path.join(_SHM, os.path.basename(path))
    with open(other, "w") as file:
        file.write(text)
    os.chmod(other, 0o644)
    kernel.mount(other, path, None, kernel.MS_BIND)
    os.unlink(other)


def _processes(namespaces: Set[str]) -> set[int]:
    """Return the processes that are in one of these namespaces."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            if namespaces & {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in _KINDS}:
                found.add(int(pid))
    return found


def _hosts(count: int) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    lines += [f"{address(number)} {name(number)}" for number in range(count)]
    lines += [f"{address6(number)} {name(number)}" for number in range(count)]
    return "".join(f"{line}\n" for line in lines)


def variables(hosts: Sequence[Host], number: int) -> Mapping[str, str]:
    """Return the variables that tell a program on which host it is, and who the others are."""
    return {
        "MALT_SIM_HOST": str(number),
        "MALT_SIM_HOSTS": str(len(hosts)),
        "MALT_SIM_NAMES": ",".join(host.name for host in hosts),
        "MALT_SIM_ADDRESSES": ",".join(host.address for host in hosts),
    }
