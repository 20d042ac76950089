"""iperf3 between two hosts, with one stream and the system's settings."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from .clock import idle
from .serve import Timed, serve

PORT = "5302"

LEAST = 256 << 20
"""Bytes of a turn at least: iperf3 takes its time to begin."""


class Iperf:
    """One rank: rank 1 is the server."""

    def __init__(self) -> None:
        self.rank = int(os.environ["BENCH_RANK"])
        self._host = os.environ["BENCH_HOST"]
        self._server: subprocess.Popen[str] | None = None
        if self.rank == 1:
            command = ["iperf3", "--server", "--bind", self._host, "--port", PORT, "--forceflush"]
            self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert self._server.stdout is not None
            while "listening" not in self._server.stdout.readline():
                pass

    def barrier(self) -> None:
        pass

    def drop(self) -> None:
        pass

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def prepare(self, op: str, size: int, **_: Any) -> Timed:
        if self.rank:
            return idle

        def timed(_: int) -> float:
            command = ["iperf3", "--client", self._host, "--port", PORT, "--json", "--bytes", str(max(LEAST, 4 * size))]
            told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["end"]
            got = told["sum_received"]
            if op == "stream":
                return float(got["seconds"] / got["bytes"] * size)
            used = told["cpu_utilization_percent"]
            return float((used["host_total"] + used["remote_total"]) / 100 * got["seconds"] / got["bytes"])

        return timed


if __name__ == "__main__":
    rank = Iperf()
    try:
        serve(rank)
    finally:
        rank.close()
