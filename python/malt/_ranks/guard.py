"""Kills the ranks, and what they have started, when their launcher is killed.

Started by the launcher as a program of its own, with the launcher's process id
as argument and the read end of a pipe as standard input, on which it is told the
process group of each rank. ``done`` says that the launcher has seen to everything
itself; it is the end of the guard.

The ranks also have a parent-death signal (``_parent``). It does not reach
their children, such as the Python under a shell script: that is for this one.
"""

import os
import select
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for the launcher's word, or its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    events = select.poll()
    events.register(0, select.POLLIN)
    # Some child of the launcher may hold the pipe open, so its end is not enough.
    with suppress(AttributeError, OSError):
        events.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
    os.set_blocking(0, False)
    told = b""
    alive = True
    while alive:
        alive = all(fd == 0 for fd, _ in events.poll()) and os.getppid() == int(sys.argv[1])
        with suppress(BlockingIOError):
            while piece := os.read(0, 4096):
                told += piece
            alive = False
        if told.endswith(b"done\n"):
            return
    for group in told.split():
        with suppress(OSError):  # it has ended already
            os.killpg(int(group), signal.SIGKILL)


if __name__ == "__main__":
    main()
