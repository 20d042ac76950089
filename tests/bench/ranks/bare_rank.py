"""Bare sockets between two hosts: what the network and the system permit, with no protocol at all."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import threading
import time
from typing import Any

from .clock import idle
from .serve import Timed, UnsupportedError, serve

STREAM, PING = 5300, 5301

ROUNDS = 12


class Bare:
    """One rank: rank 0 sends, rank 1 listens at its host's address."""

    def __init__(self) -> None:
        self.rank = int(os.environ["BENCH_RANK"])
        self._host = os.environ["BENCH_HOST"]
        self._socket: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        if self.rank == 1:
            self._sink = socket.create_server((self._host, STREAM))
            threading.Thread(target=self._receive, daemon=True).start()
            if program := os.environ["BENCH_PINGPONG"]:
                self._child = subprocess.Popen([program, "-listen", f"{self._host}:{PING}"], stdout=subprocess.PIPE)
                assert self._child.stdout is not None
                self._child.stdout.readline()

    def barrier(self) -> None:
        pass

    def drop(self) -> None:
        pass

    def close(self) -> None:
        """End what was started."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _receive(self) -> None:
        """Take what comes; after each whole round say how much processor time this process has used."""
        while True:
            line = self._sink.accept()[0]
            buffer = memoryview(bytearray(1 << 20))
            while head := line.recv(8, socket.MSG_WAITALL):
                left = int.from_bytes(head, "little")
                while left:
                    left -= line.recv_into(buffer[: min(left, len(buffer))])
                line.sendall(int(_used() * 1e9).to_bytes(8, "little"))

    def prepare(self, op: str, size: int, **_: Any) -> Timed:
        if op == "put-seen":
            return self._ping(size)
        if self.rank:
            return idle
        return self._round(size, cpu=op == "cpu")

    def _round(self, size: int, cpu: bool) -> Timed:
        """Seconds, or processor time per byte, of what is sent in one piece."""
        if self._socket is None:
            self._socket = socket.create_connection((self._host, STREAM))
        line, data = self._socket, bytes(size)

        def send(rounds: int) -> float:
            line.sendall((rounds * size).to_bytes(8, "little"))
            for _ in range(rounds):
                line.sendall(data)
            return int.from_bytes(line.recv(8, socket.MSG_WAITALL), "little") * 1e-9

        def timed(_: int) -> float:
            theirs = send(1)
            start, own = time.perf_counter(), _used()
            theirs = send(ROUNDS) - theirs
            if cpu:
                return (_used() - own + theirs) / (ROUNDS * size)
            return (time.perf_counter() - start) / ROUNDS

        return timed

    def _ping(self, size: int) -> Timed:
        """Half of there and back, in Go."""
        program = os.environ["BENCH_PINGPONG"]
        if not program:
            raise UnsupportedError("there is no Go compiler")
        if self.rank:
            return idle
        command = [program, "-connect", f"{self._host}:{PING}", "-bytes", str(size), "-times"]

        def timed(calls: int) -> float:
            return float(subprocess.run([*command, str(calls)], check=True, capture_output=True).stdout) / 2

        return timed


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    rank = Bare()
    try:
        serve(rank)
    finally:
        rank.close()
