"""Programs that talk over a simulated network, and the test's end of them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from typing import Any

from launching import LONG

from malt._sim import Host

# What every program begins with: `say` gives a value to the test, `told` takes one
# from it; a program that waits for what never comes ends by a signal.
_PREAMBLE = f"""\
import json, os, select, signal, socket, sys, time
signal.alarm({LONG:.0f})
def say(value): print(json.dumps(value), flush=True)
def told(): return json.loads(sys.stdin.readline())
UDP, TCP = socket.SOCK_DGRAM, socket.SOCK_STREAM
"""

ECHO = """
s = socket.create_server(("", 5000))
say("up")
c, _ = s.accept()
while data := c.recv(1 << 16):
    c.sendall(data)
"""

UDP_ECHO = """
s = socket.socket(type=UDP)
s.bind(("", 5000))
say("up")
while True:
    data, sender = s.recvfrom(2048)
    s.sendto(data, sender)
"""

# By several sockets, since what waits of one alone is soon sent when this process does not run.
FLOOD = """
sockets = [socket.socket(type=UDP) for _ in range(8)]
say("up")
while True:
    for s in sockets:
        s.sendto(bytes(1400), (sys.argv[1], 5001))
"""


class Programs(ExitStack):
    """Programs on hosts; all have ended when the block is left."""

    def start(self, host: Host, program: str, *arguments: str) -> Program:
        """Start a program that is written in Python on a host."""
        return self.enter_context(Program(host, program, arguments))


class Program:
    """One program, and what it says."""

    def __init__(self, host: Host, program: str, arguments: tuple[str, ...]) -> None:
        self._process = host.start(
            [sys.executable, "-c", _PREAMBLE + textwrap.dedent(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:
        """Return the next value that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the program has ended with exit code {self._process.wait()}"
        return json.loads(line)

    def tell(self, value: Any) -> None:
        """Give it a value."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
