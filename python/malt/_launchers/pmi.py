"""PMI-1, the protocol of MPICH's Hydra and of ``srun --mpi=pmi2``: lines of key=value over an inherited socket.

A process introduces itself once (``init``) and says goodbye (``finalize``); then the launcher hangs up.
Without the goodbye the launcher takes the end of the process for a crash and ends all others. Where MPI has
been initialised, it says both. Else we do, and leave the goodbye, or an MPI that comes later, to ``pmi_relay``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

from .channel import ChannelError

_KEY = "malt"


def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
    """Return rank 0's word on every rank; see `channel.Share`."""
    try:
        line = socket.socket(fileno=os.dup(int(env["PMI_FD"])))
    except (OSError, ValueError):
        raise ChannelError(f"PMI_FD={env['PMI_FD']} is not a socket of this process") from None
    with line:
        before = line.gettimeout()
        line.settimeout(seconds)
        try:
            if _mpi():
                if env.get("MPIR_CVAR_PMI_VERSION") == "2" or "/libpmi2" in _maps():
                    raise ChannelError("MPI speaks PMI-2 in this process, and MALT would speak PMI-1")
                return _share(line, rank, word)
            _ask(line, "init", "response_to_init", pmi_version="1", pmi_subversion="1")
            try:
                return _share(line, rank, word)
            finally:
                _leave(int(env["PMI_FD"]), line)
        except TimeoutError:
            raise ChannelError(f"not all ranks reached the PMI barrier within {seconds:g} s") from None
        finally:
            line.settimeout(before)  # also that of the MPI library, which has the same socket


def _mpi() -> bool:
    """Return whether MPI has been initialised in this process, by whatever uses it."""
    import ctypes

    loaded = {line.split(maxsplit=5)[5].strip() for line in _maps().splitlines() if "/libmpi" in line}
    for path in loaded:
        with suppress(OSError, AttributeError):  # no library, or none of MPI
            said = ctypes.c_int()
            ctypes.CDLL(path).MPI_Initialized(ctypes.byref(said))
            if said.value:
                return True
    return False


def _maps() -> str:
    with open("/proc/self/maps") as maps:
        return maps.read()


def _leave(fd: int, launcher: socket.socket) -> None:
    """Let PMI_FD lead to the relay, and that to the launcher."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pmi_relay.py")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fds = launcher.fileno(), ours.fileno()
        subprocess.run(
            [sys.executable, "-I", "-S", program, *map(str, fds)],
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # which launchers read to the end
            stderr=subprocess.DEVNULL,
            check=True,
        )
        os.dup2(theirs.fileno(), fd)


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
    while not said.endswith(b"\n"):
        piece = line.recv(1)  # what follows the answer is not ours
        if not piece:
            raise ChannelError(f"PMI closed the connection after {command}, as it does after MPI_Finalize")
        said += piece
    found = dict(part.split("=", 1) for part in said.decode().split() if "=" in part)
    if found.get("cmd") != answer or found.get("rc", "0") != "0":
        raise ChannelError(f"PMI answers {said.decode().strip()!r} to {command}")
    return found
