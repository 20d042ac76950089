"""The program that delays packets: what it reads from a device it writes to the same one, later.

Started with the names of the TAP devices that it is to make, one for each host.
Each packet comes back as it came, in order, once the delay of its device has
passed. Lines on standard input set a delay, as the number of a device and seconds;
each is answered with an empty line. The end of the input is the end of the program.

Packets travel as the kernel hands them over inside one machine, whole sends of up
to 64 KB with a header that tells how they are to be cut (virtio_net_hdr): that is
what makes Python fast enough.
"""

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

TUNSETIFF = 0x400454CA  # linux/if_tun.h
TUNSETOFFLOAD = 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 = 1, 2, 4

LARGEST = 66000
"""More bytes than a packet and its header have."""

HELD = 1 << 28
"""Bytes under way at which no more are taken: from there on the devices drop."""

TURN = 64
"""Packets that are taken from one device before others are looked at."""


class Line:
    """One device, and the packets that are under way."""

    def __init__(self, name: str) -> None:
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
        fcntl.ioctl(self.fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
        self.delay = 0.0
        self.queue: deque[tuple[float, bytes]] = deque()

    def take(self) -> int:
        """Take what has come, and return its bytes."""
        size = 0
        with suppress(BlockingIOError):
            for _ in range(TURN):
                packet = os.read(self.fd, LARGEST)
                self.queue.append((time.monotonic() + self.delay, packet))
                size += len(packet)
        return size

    def give(self, now: float) -> int:
        """Let what is due go on, none before one that came earlier, and return its bytes."""
        size = 0
        while self.queue and self.queue[0][0] <= now:
            packet = self.queue.popleft()[1]
            size += len(packet)
            with suppress(OSError):  # the device is down: the packet is lost
                os.write(self.fd, packet)
        return size


def main() -> None:
    """Carry packets until the input ends."""
    with suppress(PermissionError):  # a busy machine would delay them by seconds more, and drop what comes meanwhile
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    lines = [Line(name) for name in sys.argv[1:]]
    devices = {line.fd: line for line in lines}
    os.write(1, b"\n")
    under_way = 0
    while True:
        due = min((line.queue[0][0] for line in lines if line.queue), default=None)
        rest = None if due is None else max(0.0, due - time.monotonic())
        ready = select.select([0, *(devices if under_way < HELD else ())], [], [], rest)[0]
        for fd in ready:
            if fd != 0:
                under_way += devices[fd].take()
                continue
            told = os.read(0, 4096)
            if not told:
                return
            for line in told.splitlines():  # each is shorter than what a pipe takes at once
                number, seconds = line.split()
                lines[int(number)].delay = float(seconds)
                os.write(1, b"\n")
        now = time.monotonic()
        under_way -= sum(line.give(now) for line in lines)


if __name__ == "__main__":
    main()
