r"""Hosts of a simulated network on this machine: what ``malt sim`` and ``tests/net`` stand on.

A host is a network namespace, with a host name, a ``/etc/hosts``, shared memory
and a boot id of its own. Its cable, a pair of veth devices, leads to a bridge, the
switch. Rate (tbf), loss and cuts (filters) are the kernel's own; delay is a
program of ours (``wire``), since many kernels come without netem.

::

    h0 eth0 ------- p0 \
    h1 eth0 ------- p1 -- sw        10.0.0.1 is h0, 10.0.1.1 is h1, ...
    h2 eth0 ------- p2 /

All of it lives in namespaces of one process (``isolation``): there is nothing to
take down afterwards, since the kernel does that when this process has ended, in
whatever way, and no process started in there can outlive it.

Tools such as Mininet give theirs names in the file system and a command that cleans up after a
crash. Here one process (isolation.py) is the first in a namespace of processes, and the rest lives
under it: when it ends, in whatever way, or when the command that the user sees ends, the kernel
ends all, so there is nothing to clean up and no case in which it is forgotten. In a user namespace
the same works without root.

* Loss is a filter of four instructions at the switch, by tc, which is there anyway, so that
  nftables need not be.

* Delay is a program of ours (wire.py), to which the switch's port redirects what the host sends.
  netem is missing in many kernels, and a second way that only some machines take would be tested on
  none. Packets come to it as whole sends of up to 64 KB, so Python can carry gigabits; without a
  delay it does not run.

* A host has its own boot id, shared memory and abstract sockets, so that a program that looks
  whether two processes share a machine comes to the right conclusion.
"""

from malt._sim.host import Host
from malt._sim.isolation import isolate
from malt._sim.network import Network
from malt._sim.programs import SimError

__all__ = ["Host", "Network", "SimError", "isolate"]
