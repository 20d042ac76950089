"""torchrun, and whatever else starts ranks with PyTorch's elastic agent."""

from __future__ import annotations

from collections.abc import Mapping

from .started import Started, number


def started(env: Mapping[str, str]) -> Started | None:
    """Return who this process is; None if torchrun has not started it.

    RANK and the like alone are not enough: people set them, too. The agent listens at
    MASTER_PORT, and its store carries the word between nodes. How often a node has
    restarted cannot name a job on several nodes, whose counts differ.

    Examples
    --------
    >>> agent = {"TORCHELASTIC_RUN_ID": "7", "LOCAL_WORLD_SIZE": "2"}
    >>> started({**agent, "RANK": "1", "WORLD_SIZE": "2"}).together
    True
    """
    if not {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"} <= env.keys():
        return None
    size = number(env, "WORLD_SIZE")
    named = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
    return Started(
        by="torchrun",
        rank=number(env, "RANK"),
        size=size,
        together="LOCAL_WORLD_SIZE" not in env or number(env, "LOCAL_WORLD_SIZE") == size,
        job=" ".join(env.get(name, "") for name in named),
        # Without it, MASTER_PORT is kept free for rank 0's torch.distributed.
        channel="torchstore" if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else "",
        hand="before torchrun, the same on each node",
        ends="torchrun ends all ranks when one ends with an error",
    )
