r"""Hosts of a simulated network on this machine: what ``malt sim`` and ``tests/net`` stand on.

A host is a network namespace, with a host name, a ``/etc/hosts``, shared memory
and a boot id of its own. Its cable, a pair of veth devices, leads to a bridge, the
switch. Rate (tbf), loss (a filter) and a cut cable are the kernel's own; delay is a
program of ours (``wire``), since many kernels come without netem.

::

    h0 eth0 ------- p0 \
    h1 eth0 ------- p1 -- sw        10.0.0.1 is h0, 10.0.1.1 is h1, ...
    h2 eth0 ------- p2 /

All of it lives in namespaces of one process (``isolation``): there is nothing to
take down afterwards, since the kernel does that when this process has ended, in
whatever way, and no process started in there can outlive it.
"""

from malt._sim.host import Host
from malt._sim.isolation import isolate
from malt._sim.network import Network
from malt._sim.programs import SimError

__all__ = ["Host", "Network", "SimError", "isolate"]
