"""MPICH's mpiexec, Intel MPI's, and what else is built on Hydra: they speak PMI-1 to their ranks."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from contextlib import suppress

from .started import Started, number


def started(env: Mapping[str, str]) -> Started | None:
    """Return who this process is; None if Hydra has not started it.

    Nothing in the environment names the job. On one machine the proxy of Hydra does, whose children
    the ranks are. So nothing is said over PMI there: Hydra ends the job of a process that has spoken and ends
    without the goodbye, which only one user of PMI in a process can say.

    Examples
    --------
    >>> hydra = {"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": "9", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    >>> started(hydra).together
    True
    """
    if not {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"} <= env.keys():
        return None
    size = number(env, "PMI_SIZE")
    return Started(
        by="mpiexec",
        rank=number(env, "PMI_RANK"),
        size=size,
        together="MPI_LOCALNRANKS" in env and number(env, "MPI_LOCALNRANKS") == size,
        job=_proxy(env) if "PMI_SPAWNED" not in env else "",
        channel="pmi" if "PMI_FD" in env else "",
        hand="and pass it on with mpiexec -genvlist NAME",
    )


def _proxy(env: Mapping[str, str]) -> str:
    """Return which process has made the socket of PMI, and when it was started; empty if that cannot be seen."""
    import socket  # takes half a megabyte

    with suppress(OSError, ValueError, KeyError):
        with socket.socket(fileno=os.dup(int(env["PMI_FD"]))) as line:
            pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if pid > 0:
            with open(f"/proc/{pid}/stat") as stat:
                return f"{pid} {stat.read().rpartition(')')[2].split()[19]}"
    return ""
