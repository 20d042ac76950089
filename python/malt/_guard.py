"""Kills the ranks, and what they have started, when their launcher is killed.

Started by the launcher as a program of its own, with the read end of a pipe as
standard input, on which it is told the process group of each rank. The kernel
closes the launcher's end however the launcher ends. The last line is ``done``
if the launcher has seen to everything itself.

The ranks have a parent-death signal besides (``_parent``). It does not reach
their children, such as the Python under a shell script: that is for this one.
"""

import os
import signal
from contextlib import suppress


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    told = b""
    while piece := os.read(0, 4096):
        told += piece
    lines = told.split()
    if b"done" in lines:
        return
    for group in lines:
        with suppress(OSError):  # it has ended already
            os.killpg(int(group), signal.SIGKILL)


if __name__ == "__main__":
    main()
