"""The pods of a Kubernetes Job with ``completionMode: Indexed``, one rank in each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from .started import Started, number

PORT = 29600
"""Where rank 0 listens."""


def started(env: Mapping[str, str], hosts: str | None = None) -> Started | None:
    """Return who this process is; None if it is in no pod of an indexed job, or alone by MALT_SIZE=1.

    Parameters
    ----------
    env : mapping
        The environment. A pod is not told how many there are: MALT_SIZE says it.
    hosts : str, optional
        The text of /etc/hosts, where Kubernetes notes the pod's name in its service.

    Examples
    --------
    >>> pod = {"JOB_COMPLETION_INDEX": "2", "MALT_SIZE": "4", "HOSTNAME": "train-2"}
    >>> started(pod, "10.1.0.7 train-2.ranks.default.svc.cluster.local train-2").store
    'train-0.ranks.default.svc.cluster.local:29600'
    """
    if "JOB_COMPLETION_INDEX" not in env or env.get("MALT_SIZE") == "1":
        return None
    index, host = env["JOB_COMPLETION_INDEX"], env.get("HOSTNAME", "")
    if hosts is None:
        hosts = ""
        with suppress(OSError), open("/etc/hosts") as file:
            hosts = file.read()
    # <job>-<index>.<service>.<namespace>.svc.<domain>
    name = re.search(rf"\s({re.escape(host.removesuffix('-' + index))})-{index}(\.\S+)", hosts) if host else None
    return Started(
        by="Kubernetes",
        rank=number(env, "JOB_COMPLETION_INDEX"),
        size=number(env, "MALT_SIZE") if "MALT_SIZE" in env else 0,
        store=f"{name[1]}-0{name[2]}:{PORT}" if name else "",
        hand="under env: in the pod's template",
    )
