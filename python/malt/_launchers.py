"""Jobs that something other than ``malt run`` has started: torchrun, Open MPI's mpirun, Slurm's srun.

Each tells its processes in variables of its own who they are. Translated, they
are options of ``malt.init``; where the ranks meet follows from what names the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ._errors import UnsupportedError

__all__ = ["described"]


class _Launcher(NamedTuple):
    """The variables of one launcher; all of `job` that are set name the job together."""

    name: str
    sure_sign: str  # set by this launcher alone, and in its ranks alone
    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...]


_LAUNCHERS = (
    _Launcher(
        "torchrun",
        "TORCHELASTIC_RUN_ID",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
    ),
    _Launcher(
        "mpirun",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    # Not SLURM_NTASKS: a batch script, which is no rank, has that as well.
    _Launcher(
        "srun",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID",
        "SLURM_STEP_TASKS_PER_NODE",
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
)


def described(env: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of `malt.init` that another launcher's variables amount to; None without one.

    Raises
    ------
    UnsupportedError
        The job is on several machines.

    Examples
    --------
    >>> described({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "7"})["rank"]
    '1'
    >>> described({})
    """
    for launcher in _LAUNCHERS:
        if launcher.sure_sign not in env or launcher.rank not in env or launcher.size not in env:
            continue
        rank, size = env[launcher.rank], env[launcher.size]
        if env.get(launcher.local_size, size) != size:
            raise UnsupportedError(
                f"malt: {launcher.name} has started {size} ranks, {env[launcher.local_size]} of them on this machine: "
                "this version joins the ranks of one machine"
            )
        import hashlib  # loads OpenSSL, which most processes do without

        name = hashlib.sha256(repr([launcher.name, *(env.get(part) for part in launcher.job)]).encode())
        return {
            "rank": rank,
            "size": size,
            "local_rank": env.get(launcher.local_rank, rank),
            "store": f"local:{name.hexdigest()[:32]}",
            # No secret: what keeps others out is that only this user's processes may join.
            "token": name.hexdigest()[32:],
        }
    return None
