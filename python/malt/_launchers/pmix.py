"""PMIx, which Open MPI's mpirun and ``srun --mpi=pmix`` speak."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from .channel import ChannelError


def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
    """Return rank 0's word on every rank; see `channel.Share`.

    A process of its own speaks to PMIx, as this rank. An MPI library that is initialised
    after another user of PMIx fails, and PMIx ends the jobs of programs that do not say
    goodbye at the right moment.
    """
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pmix_client.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", program],
            input=word if rank == 0 else "",
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ChannelError(f"not all ranks have come to the fence of PMIx within {seconds:g} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ChannelError(said[-1] if said else f"the program that speaks to PMIx ends with {done.returncode}")
    return done.stdout.strip()
