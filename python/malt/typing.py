"""Types of the options, for programs that are checked by mypy or pyright.

A type checker finds a misspelt option from these, and they say what a function of your own
passes on::

    def train(consistency: malt.typing.Consistency = "bsp") -> None:
        v = malt.Vector(10, consistency=consistency)

A type checker only knows the numbers that are listed here. A graph whose name the program
puts together is written ``malt.Graph(f"random:{k}")``; another consistency is
``cast("malt.typing.Consistency", f"ssp:{slack}")``. MALT itself accepts all of them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = [
    "Consistency",
    "Even",
    "FileFormat",
    "FoldName",
    "Frame",
    "GraphName",
    "Of",
    "Op",
    "Order",
    "Sparse",
    "Start",
    "Transport",
    "Uneven",
]

# The package's own checks read these; a test compares them with the library's tables.

GraphName: TypeAlias = Literal[
    "all", "ring", "chord", "halton", "halton-paper",
    "random:1", "random:2", "random:3", "random:4", "random:5", "random:6", "random:7", "random:8",
    "hypercube", "star", "one-peer",
]  # fmt: skip
"""``graph=``, besides `malt.Graph`, lists and networkx graphs."""

Consistency: TypeAlias = Literal[
    "bsp", "async", "notify-ack",
    "ssp:0", "ssp:1", "ssp:2", "ssp:3", "ssp:4", "ssp:5", "ssp:6", "ssp:7", "ssp:8", "ssp:10", "ssp:16", "ssp:32",
    "notify-ack:1", "notify-ack:2", "notify-ack:3", "notify-ack:4", "notify-ack:8",
]  # fmt: skip
"""``consistency=``."""

FoldName: TypeAlias = Literal["mean", "mean-received", "sum", "min", "max", "replace"]
"""``fold=``, besides functions."""

Op: TypeAlias = Literal["mean", "sum", "min", "max"]
"""``op=`` of `malt.allreduce`."""

Sparse: TypeAlias = Literal["model", "gradient"]
"""``sparse=``, besides False."""

Uneven: TypeAlias = Literal["ok", "error"]
"""``uneven=``."""

Start: TypeAlias = Literal["same", "own"]
"""``start=``."""

Of: TypeAlias = Literal["params", "grads"]
"""``of=`` of `malt.torch.Vector`."""

Transport: TypeAlias = Literal["auto", "shm", "tcp", "inmem"]
"""``transport=`` of `malt.init`."""

Order: TypeAlias = Literal["stride", "block", "shuffle"]
"""``order=`` of `malt.shard` and `malt.load`."""

Even: TypeAlias = Literal["pad", "drop"]
"""``even=`` of `malt.shard`."""

FileFormat: TypeAlias = Literal["svmlight", "npy", "npz", "csv", "parquet", "idx", "text"]
"""``format=`` of `malt.load`."""

Frame: TypeAlias = Literal["pandas", "polars"]
"""``frame=`` of `malt.load`."""
