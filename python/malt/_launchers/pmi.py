"""PMI-1, the protocol of MPICH's Hydra and of ``srun --mpi=pmi2``: lines of key=value over an inherited socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from .channel import ChannelError

_KEY = "malt"


def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
    """Return rank 0's word on every rank; see `channel.Share`."""
    try:
        line = socket.socket(fileno=os.dup(int(env["PMI_FD"])))
    except (OSError, ValueError):
        raise ChannelError(f"PMI_FD={env['PMI_FD']} is no socket of this process, as it should be") from None
    with line:
        before = line.gettimeout()
        line.settimeout(seconds)
        try:
            # Hydra answers without it, and takes who introduces itself for one that will say goodbye.
            if "MPI_LOCALRANKID" not in env:
                _ask(line, "init", "response_to_init", pmi_version="1", pmi_subversion="1")
            return _share(line, rank, word)
        except TimeoutError:
            raise ChannelError(f"not all ranks have come to the barrier of PMI within {seconds:g} s") from None
        finally:
            line.settimeout(before)  # also that of the MPI library, which has the same socket


def _share(line: socket.socket, rank: int, word: str) -> str:
    space = _ask(line, "get_my_kvsname", "my_kvsname")["kvsname"]
    if rank == 0:
        _ask(line, "put", "put_result", kvsname=space, key=_KEY, value=word)
    _ask(line, "barrier_in", "barrier_out")
    return _ask(line, "get", "get_result", kvsname=space, key=_KEY)["value"]


def _ask(line: socket.socket, command: str, answer: str, **arguments: str) -> dict[str, str]:
    """Send a command and return what its answer says."""
    line.sendall(" ".join([f"cmd={command}", *(f"{k}={v}" for k, v in arguments.items())]).encode() + b"\n")
    said = b""
    while not said.endswith(b"\n"):  # byte by byte would do: nothing else comes before the next command
        piece = line.recv(4096)
        if not piece:
            raise ChannelError(f"PMI has hung up after {command}")
        said += piece
    found = dict(part.split("=", 1) for part in said.decode().split() if "=" in part)
    if found.get("cmd") != answer or found.get("rc", "0") != "0":
        raise ChannelError(f"PMI answers {said.decode().strip()!r} to {command}")
    return found
