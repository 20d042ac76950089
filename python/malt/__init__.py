"""MALT: data-parallel training of an existing Python loop.

Every rank runs the same script on its own part of the data, writes its model (or
gradient) straight into the memory of the ranks that a dataflow graph names, and
averages what has arrived into its own. Six lines differ from the serial program::

    import numpy as np
    import malt  # new

    truth = np.arange(10.0)
    x = np.random.default_rng(0).normal(size=(40_000, 10))
    y = x @ truth

    v = malt.Vector(10)  # was: w = np.zeros(10)
    w = v.array  # new
    for a, b in zip(*malt.shard(x, y)):  # was: for a, b in zip(x, y):
        w -= 0.01 * (a @ w - b) * a
        v.sync(every=100)  # new: every 100 rows, average the model with the other ranks'
    v.allreduce()  # new: the same model on every rank

    print(f"error {abs(w - truth).max():.1e}")

``malt run -n 4 train.py`` runs it as four ranks. By default all ranks meet at each
sync. Without ``malt run`` the same script is world size 1 and gives the serial
result, bit for bit.

Importing the package loads next to nothing; the library is loaded when something
of it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import _frames as _frames  # shows exceptions from now on
from . import _identity as _identity  # has to see forks from now on

if TYPE_CHECKING:
    from . import sklearn as sklearn
    from . import torch as torch
    from . import typing as typing
    from ._c import get_include, get_library
    from ._errors import (
        Error,
        HostError,
        MismatchError,
        OutOfMemoryError,
        PackageError,
        PeerError,
        StaleError,
        StateError,
        TimeoutError,
        UnsupportedError,
    )
    from ._fold import Update
    from ._graph import Graph
    from ._load import load
    from ._run import run
    from ._segment import Message, Segment
    from ._shard import shard
    from ._stats import Edge, Stats
    from ._vector import Vector
    from ._world import allgather, allreduce, barrier, broadcast, generation, init, local_rank, rank, size

    __version__: str

# Where each public name is, so that it is loaded when it is first asked for.
_HOMES = {
    "_c": ("get_include", "get_library"),
    "_errors": (
        "Error",
        "HostError",
        "MismatchError",
        "OutOfMemoryError",
        "PackageError",
        "PeerError",
        "StaleError",
        "StateError",
        "TimeoutError",
        "UnsupportedError",
    ),
    "_fold": ("Update",),
    "_graph": ("Graph",),
    "_load": ("load",),
    "_notebook": ("load_ipython_extension", "unload_ipython_extension"),
    "_run": ("run",),
    "_segment": ("Message", "Segment"),
    "_shard": ("shard",),
    "_stats": ("Edge", "Stats"),
    "_vector": ("Vector",),
    "_world": ("allgather", "allreduce", "barrier", "broadcast", "generation", "init", "local_rank", "rank", "size"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

# Submodules for what not everybody has: loaded at the first use of, say, malt.torch.
_SUBMODULES = ("dask", "ray", "sklearn", "torch", "typing")

__all__ = [
    "Edge",
    "Error",
    "Graph",
    "HostError",
    "Message",
    "MismatchError",
    "OutOfMemoryError",
    "PackageError",
    "PeerError",
    "Segment",
    "StaleError",
    "StateError",
    "Stats",
    "TimeoutError",
    "UnsupportedError",
    "Update",
    "Vector",
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "generation",
    "get_include",
    "get_library",
    "init",
    "load",
    "local_rank",
    "rank",
    "run",
    "shard",
    "size",
]


if not TYPE_CHECKING:  # type checkers are to find misspelt names

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("malt")
        if name in _SUBMODULES:
            return import_module("." + name, __name__)
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module("." + _HOME[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES, "__version__"]
