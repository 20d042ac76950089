"""The delay of cables, as the processes of ``wire`` make it."""

from __future__ import annotations

import os
import subprocess
import sys

from malt._sim.programs import SimError

TUN = "/dev/net/tun"


class Delay:
    """One process that holds packets back, with a device for each host.

    Parameters
    ----------
    hosts : int
        How many hosts there are: their devices are `device` (0), `device` (1), ….
    """

    def __init__(self, hosts: int) -> None:
        if not os.access(TUN, os.R_OK | os.W_OK):
            raise SimError(f"a delay needs {TUN}", "you cannot open it", f"As root: modprobe tun; chmod 666 {TUN}.")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", program, *map(self.device, range(hosts))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the hosts
        )
        self._answer()

    @staticmethod
    def device(host: int) -> str:
        """Return the name of the device of a host."""
        return f"d{host}"

    def set(self, host: int, seconds: float) -> None:
        """Set how long packets of a host are held back, from the next one on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{host} {seconds!r}\n".encode())
        self._answer()

    def _answer(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise SimError(f"the program that delays packets has ended, with exit code {self._process.wait()}")

    def close(self) -> None:
        """End the process; its devices go with it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
