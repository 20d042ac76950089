"""Runs a program beside simulated hosts that it may use, such as the Go tests.

::

    go test -exec "$PWD/.venv/bin/python $PWD/tests/net/beside.py --hosts 8" ./tests/go/processes

The program finds in ``MALT_TEST_HOSTS`` the number of a descriptor: a socket, on
which the first line is a list of the hosts, as JSON, each with its name, its address
and the options of `nsenter` that lead a program to it. After that each line of the
program's, ``["loss", 3, 0.05]``, changes something of a host, or lets something
happen to hosts and links, ``["apply", "cut:h0->h1"]`` (see ``malt._sim.events``), and
is answered with a line: null, or what went wrong. Where there can be no hosts the program runs
without the variable; ``--required`` makes it a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from malt._sim import Host, Network, SimError, isolate

VARIABLE = "MALT_TEST_HOSTS"


def calm(net: Network, number: int) -> None:
    """Make a host's cable as good as new, and let go of connections that nobody holds any more."""
    host = net.hosts[number]
    cable = host.cable
    net.apply(f"heal:{host.name}")
    for name, usual in (("rate", None), ("loss", 0.0), ("delay", 0.0)):
        if getattr(cable, name) != usual:
            setattr(cable, name, usual)
    host.reset()


CHANGES: dict[str, Callable[..., Any]] = {
    "apply": lambda net, event: net.apply(event),
    "rate": lambda net, number, bits: setattr(net.hosts[number].cable, "rate", bits),
    "loss": lambda net, number, part: setattr(net.hosts[number].cable, "loss", part),
    "delay": lambda net, number, seconds: setattr(net.hosts[number].cable, "delay", seconds),
    "reset": lambda net, number: net.hosts[number].reset(),
    "calm": calm,
}


def serve(net: Network, line: socket.socket) -> None:
    """Change what the program asks for, until it has ended."""
    with line.makefile("rw", encoding="utf-8") as asked:

        def answer(value: object) -> None:
            asked.write(json.dumps(value) + "\n")
            asked.flush()

        answer([{"name": host.name, "address": host.address, "enter": entrance(host)} for host in net.hosts])
        for request in asked:
            change, *what = json.loads(request)
            try:
                CHANGES[change](net, *what)
            except SimError as error:
                answer(str(error))
            else:
                answer(None)


def entrance(host: Host) -> list[str]:
    """Return the options of `nsenter` that lead to a host."""
    options = {"net": "--net", "mnt": "--mount", "uts": "--uts", "ipc": "--ipc"}
    return [f"{options[kind]}={path}" for kind, path in host.namespaces.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--required", action="store_true", help="fail where there can be no hosts")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    told = parser.parse_args()
    try:
        isolate()
    except SimError as error:
        print(f"{'failed' if told.required else 'without hosts'}: {error}", flush=True)
        return 1 if told.required else subprocess.call(told.program)
    with Network(told.hosts) as net:
        here, there = socket.socketpair()
        with here, there:
            environment = {**os.environ, VARIABLE: str(there.fileno())}
            program = subprocess.Popen(told.program, env=environment, pass_fds=[there.fileno()])
            there.close()
            with contextlib.suppress(PermissionError):  # a cut lasts until this process is there to end it
                os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            serve(net, here)
            return program.wait()


if __name__ == "__main__":
    sys.exit(main())
