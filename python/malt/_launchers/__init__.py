"""Jobs that something other than ``malt run`` has started, and how their ranks meet.

Each launcher tells its processes in variables of its own who they are. A module for
each, a function of the environment alone, says what they mean (`started`). `joining`
makes options of ``malt.init`` of it: on one machine the name of the job is enough; on
several, rank 0's address has to be known, or to reach the others by a `channel`.

* Other launchers: a pure function of the environment for each, and where the
  environment has no address, a channel that carries a word of rank 0. PMI-1 is a few lines. PMIx is
  spoken by a process of its own, since an MPI library that comes second to libpmix in a process
  fails. A rank of PMI-1 that ends without a goodbye ends the job, so a process beside it says that
  (pmi_relay.py); on one machine MPICH's ranks meet under the name of their proxy, and say nothing.
  torchrun's store outlives the ranks, so its word is confirmed by a number that only a living rank
  0 can know.

malt run (python/malt/_ranks/launch.py, _cli) watches the processes of one machine. With -H an agent on
each host (_cli/agent.py), started by ssh, does that for the ranks there. Both ends are a Job, as on one
machine, so output, signals, the first failure and the summary are handled once; _cli/remote.py, which
malt doctor -H uses as well, is the way between them. All of it goes over ssh's input and output: frames
of what ranks write, lines of JSON, nothing that is executed. The end of the connection ends the ranks.
No rank starts before all hosts are ready. The agent of rank 0's host makes the socket where all meet
and passes its descriptor on, so no other program can take the port.

Ray and Dask (_engines.py) place ranks; each is a process of its own there, as with malt.run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from malt._errors import UnsupportedError

from .._guide import lines
from . import channel, kubernetes, mpich, openmpi, slurm, torchrun
from .started import Started

if TYPE_CHECKING:
    import socket

__all__ = ["Started", "described", "joining"]

# In this order: what starts ranks inside an allocation comes before what made the allocation.
_LAUNCHERS = (torchrun, openmpi, mpich, slurm, kubernetes)


def described(env: Mapping[str, str]) -> Started | None:
    """Return what another launcher's variables say; None without one, and for ranks of ``malt run``.

    Examples
    --------
    >>> described({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "7"}).by
    'mpirun'
    >>> described({})
    """
    if env.get("MALT_RANK") or (env.get("MALT_SIZE") and "JOB_COMPLETION_INDEX" not in env):
        return None
    return next((found for launcher in _LAUNCHERS if (found := launcher.started(env))), None)


def joining(rank: Started, env: Mapping[str, str], seconds: float, on_death: object = None) -> dict[str, str]:
    """Return the options of `malt.init` with which a rank joins its job.

    Parameters
    ----------
    rank : Started
        What `described` says.
    env : mapping
        The environment; MALT_STORE and MALT_TOKEN in it come first.
    seconds : float
        Time that the others may take to come.
    on_death : object, optional
        As of `malt.init`.

    Raises
    ------
    UnsupportedError
        The ranks cannot find each other, and it says what to set; or the launcher does not let the
        others go on when a rank dies.
    """
    if on_death == "continue" and rank.ends:
        raise UnsupportedError(
            lines(
                f"on_death=continue is not possible under {rank.by}",
                rank.ends,
                "Start the ranks with `malt run --on-death continue`, or leave it out.",
            )
        )
    if rank.size == 0:
        raise UnsupportedError(
            lines(
                f"this is pod {rank.rank} of an indexed job of {rank.by}",
                "Kubernetes does not say how many pods there are",
                f"Set MALT_SIZE to the job's completions, {rank.hand}; to 1 if each works alone.",
            )
        )
    told = {"rank": str(rank.rank), "size": str(rank.size)}
    if rank.size == 1:
        return told
    store, token = env.get("MALT_STORE"), env.get("MALT_TOKEN")
    if store is None and rank.together and rank.job:
        import hashlib  # loads OpenSSL, which most processes do without

        name = hashlib.sha256(f"{rank.by} {rank.job}".encode()).hexdigest()
        # No secret: what keeps others out is that only this user's processes may join.
        return {**told, "store": f"local:{name[:32]}", "token": token or name[32:]}
    if store is None and rank.channel:
        return {**told, **_told_by_rank_0(rank, env, token, seconds)}
    store = store or rank.store
    if not store:
        raise _lost(rank, "nothing tells them where to meet")
    if not token and not store.startswith("local:"):
        raise _no_secret(rank, f"any process that reaches {store}, where they meet, could join without one")
    return {**told, "store": store, **({"token": token} if token else {})}


def _told_by_rank_0(rank: Started, env: Mapping[str, str], token: str | None, seconds: float) -> dict[str, str]:
    """Return the store that rank 0 has made and the token, and at rank 0 the socket that listens there.

    A token that the user has set never goes through the channel. One that rank 0 draws does, where
    only ranks of the job can read that.
    """
    if not token and rank.channel not in channel.PRIVATE:
        raise _no_secret(rank, f"MALT makes none, since strangers can read the channel of {rank.by}")
    listening: list[socket.socket] = []
    word = ""
    if rank.rank == 0:
        store = f"local:{os.urandom(16).hex()}"
        if not rank.together:
            from malt._ranks.addresses import listen

            listening, store = listen(env)
        word = store if token else f"{os.urandom(16).hex()}@{store}"
    try:
        said = channel.named(rank.channel)(env, rank.rank, rank.size, word, seconds)
    except channel.ChannelError as error:
        raise _lost(rank, str(error)) from None
    drawn, _, store = said.rpartition("@")
    if bool(token) == bool(drawn):
        has, lacks = (rank.rank, 0) if token else (0, rank.rank)
        raise _no_secret(rank, f"MALT_TOKEN is set on rank {has}, and not on rank {lacks}")
    told = {"store": store, "token": token or drawn}
    if listening:
        told["store_fd"] = ",".join(str(one.detach()) for one in listening)
    return told


def _no_secret(rank: Started, why: str) -> UnsupportedError:
    return _unable(rank, "need a secret that they share", why, "Set")


def _lost(rank: Started, why: str) -> UnsupportedError:
    do = "Set MALT_STORE to a name of rank 0's machine and a free port there, HOST:PORT,\nand"
    return _unable(rank, "cannot find each other", why, do)


def _unable(rank: Started, what: str, why: str, do: str) -> UnsupportedError:
    where = "" if rank.together else " on several machines"
    what = f"{rank.by} has started {rank.size} ranks{where}, which {what}"
    return UnsupportedError(lines(what, why, f"{do} MALT_TOKEN to what `malt token` prints, {rank.hand}."))
