"""Open MPI's mpirun, which speaks PMIx to its ranks."""

from __future__ import annotations

from collections.abc import Mapping

from .started import Started, number


def started(env: Mapping[str, str]) -> Started | None:
    """Return who this process is; None if Open MPI has not started it.

    Examples
    --------
    >>> started({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "7"}).rank
    1
    """
    if not {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"} <= env.keys():
        return None
    size = number(env, "OMPI_COMM_WORLD_SIZE")
    here = "OMPI_COMM_WORLD_LOCAL_SIZE"
    return Started(
        by="mpirun",
        rank=number(env, "OMPI_COMM_WORLD_RANK"),
        size=size,
        together=here not in env or number(env, here) == size,
        job=" ".join(env.get(name, "") for name in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
        channel="pmix" if "PMIX_NAMESPACE" in env else "",
        hand="and pass it on with mpirun -x NAME",
    )
