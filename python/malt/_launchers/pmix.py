"""PMIx, which Open MPI's mpirun and ``srun --mpi=pmix`` speak."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from ctypes import CDLL

from . import pmix_client
from .channel import ChannelError

_held: list[int] = []  # connections to the server that stay open as long as this process: `pmix_client.detour`


def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
    """Return rank 0's word on every rank; see `channel.Share`.

    Where MPI speaks to PMIx already, its connection serves: a second one with the same rank makes
    some of Open MPI's jobs wait for ever in MPI_Finalize.

    Else a process of its own speaks to PMIx, as this rank. An MPI library that is initialised
    after another user of PMIx fails, and PMIx ends the jobs of programs that do not say
    goodbye at the right moment.
    """
    for pmix in map(CDLL, pmix_client.loaded(os.getpid())):
        if pmix.PMIx_Initialized():
            return _here(pmix, word, seconds)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pmix_client.py")
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                done = subprocess.run(
                    [sys.executable, "-I", "-S", program, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    input=word if rank == 0 else "",
                    capture_output=True,
                    text=True,
                    timeout=seconds,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            raise _late(seconds) from None
        _held.extend(socket.recv_fds(ours, 1, 1, socket.MSG_CMSG_CLOEXEC)[1])
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ChannelError(said[-1] if said else f"the program that speaks to PMIx ended with {done.returncode}")
    return done.stdout.strip()


def _here(pmix: CDLL, word: str, seconds: float) -> str:
    """Share the word by this process's connection to PMIx, whose calls know no timeout."""
    said: list[str | SystemExit] = []

    def exchange() -> None:
        try:
            said.append(pmix_client.exchange(pmix, lambda: word))
        except SystemExit as error:
            said.append(error)

    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(seconds)
    if not said:
        raise _late(seconds)
    if isinstance(said[0], SystemExit):
        raise ChannelError(str(said[0]))
    return said[0]


def _late(seconds: float) -> ChannelError:
    return ChannelError(f"not all ranks reached the PMIx fence within {seconds:g} s")
