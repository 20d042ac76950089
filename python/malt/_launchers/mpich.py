"""MPICH's mpiexec, Intel MPI's, and what else is built on Hydra: they speak PMI-1 to their ranks."""

from __future__ import annotations

from collections.abc import Mapping

from .started import Started, number


def started(env: Mapping[str, str]) -> Started | None:
    """Return who this process is; None if Hydra has not started it.

    Nothing in the environment names the job, so the word goes by PMI on one machine, too.

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
        channel="pmi" if "PMI_FD" in env else "",
        hand="and hand it on with mpiexec -genvlist NAME",
    )
