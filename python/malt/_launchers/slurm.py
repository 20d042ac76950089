"""Slurm's srun: the steps of a job. A batch script is not a step, and what it starts itself is not a rank."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .started import Started, number

PORTS = range(20000, 30000)
"""Where rank 0 listens, unless srun --resv-ports has reserved ports or PMI carries another one."""

_LARGEST = 0xFFFFFFF0
"""Step numbers from here on are those of batch scripts, interactive shells and the like."""


def started(env: Mapping[str, str]) -> Started | None:
    """Return who this process is; None if it is not a task of a step.

    Not SLURM_NTASKS: a batch script has that as well.

    Examples
    --------
    >>> job = {"SLURM_JOB_ID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"}
    >>> started({**job, "SLURM_PROCID": "2", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "n[07-08]"}).store
    'n07:20192'
    """
    if not {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"} <= env.keys():
        return None
    if number(env, "SLURM_STEP_ID") >= _LARGEST:
        return None
    nodes = env.get("SLURM_STEP_NODELIST", "")
    return Started(
        by="srun",
        rank=number(env, "SLURM_PROCID"),
        size=number(env, "SLURM_STEP_NUM_TASKS"),
        together=env.get("SLURM_STEP_NUM_NODES", "1") == "1",
        job=" ".join(env.get(name, "") for name in ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID")),
        channel="pmi" if "PMI_FD" in env else "pmix" if "PMIX_NAMESPACE" in env else "",
        store=f"{first(nodes)}:{_port(env)}" if nodes else "",
        hand="before srun, which passes it on",
    )


def first(nodes: str) -> str:
    """Return the first of a list of hosts, where Slurm puts rank 0.

    Examples
    --------
    >>> first("gpu[008-011,14],login1")
    'gpu008'
    """
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", head[0] if head else "")


def _port(env: Mapping[str, str]) -> int:
    reserved = re.match(r"\d+", env.get("SLURM_STEP_RESV_PORTS", ""))
    if reserved:
        return int(reserved[0])
    # Steps that run at the same time on one node are mostly neighbours in both numbers.
    job, step = number(env, "SLURM_JOB_ID") if "SLURM_JOB_ID" in env else 0, number(env, "SLURM_STEP_ID")
    return PORTS[(64 * job + step) % len(PORTS)]
