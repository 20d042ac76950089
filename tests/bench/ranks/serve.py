"""A rank's loop: it does what the driver says over a socket, and sleeps on it meanwhile.

That is what makes turns possible: the ranks of all systems are up at the same time,
and those that have no turn take no core.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, Protocol

Times = list[tuple[float, float]]
"""Begin and end of each call, by the clock that all processes of a machine share."""

Seconds = Callable[[int], "float | None"]
"""Does so many calls; returns seconds per call, or None where this rank's time does not count."""

Timed = Callable[[int], "float | Times | None"]
"""The same; or it returns `Times`."""


class UnsupportedError(Exception):
    """The system has no such operation; the text says why."""


class System(Protocol):
    """One rank of something that moves numbers between ranks."""

    rank: int

    def barrier(self) -> None:
        """Return when all ranks are here."""

    def prepare(self, op: str, size: int, **options: Any) -> Timed:
        """Make ready for an operation on `size` bytes of float32."""

    def drop(self) -> None:
        """Give back all that `prepare` made."""


def serve(system: System) -> None:
    """Serve until the driver hangs up."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["BENCH_SOCKET"])
    file = line.makefile("rw")
    _say(file, rank=system.rank, team=os.environ["BENCH_TEAM"])
    timed: dict[str, Timed] = {}
    for text in file:
        order = json.loads(text)
        what = order.pop("do")
        try:
            if what == "prepare":
                part = order.pop("part")
                if "late" in order and system.rank < int(os.environ["BENCH_SIZE"]) - 1:  # only the last rank is
                    order["late"] = 0.0
                timed[part] = system.prepare(**order)
                _say(file)
            elif what == "drop":
                timed.clear()
                system.drop()
                _say(file)
            else:
                system.barrier()
                if order["warm"]:
                    timed[order["part"]](order["warm"])
                _say(file, seconds=timed[order["part"]](order["calls"]))
        except Exception as error:  # the driver shows it in the row's place
            _say(file, error=f"{type(error).__name__}: {error}")


def _say(file: Any, **answer: Any) -> None:
    file.write(json.dumps(answer) + "\n")
    file.flush()
