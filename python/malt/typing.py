"""Types of the options, for programs that are checked by mypy or pyright.

With these a type checker finds a misspelt option. Use them to annotate functions that pass
options on::

    def train(consistency: malt.typing.Consistency = "bsp") -> None:
        v = malt.Vector(10, consistency=consistency)

A type checker only knows the numbers that are listed here: ``random:1`` to ``random:16``,
``ssp:0`` to ``ssp:16``, ``ssp:32``, ``ssp:64``, ``notify-ack:1`` to ``notify-ack:8``. MALT
itself accepts others. For another graph, write ``malt.Graph(f"random:{k}")``; for another
consistency, ``cast("malt.typing.Consistency", f"ssp:{slack}")``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = [
    "ChangesName",
    "Consistency",
    "Even",
    "FileFormat",
    "FoldName",
    "Frame",
    "GraphName",
    "Of",
    "OnDeath",
    "Op",
    "Order",
    "Sparse",
    "Start",
    "Transport",
    "Uneven",
    "Wire",
]

# The package's own checks read these; a test compares them with the library's tables.

GraphName: TypeAlias = Literal[
    "all", "ring", "chord", "halton", "halton-paper", "hypercube", "star", "butterfly",
    "shards", "shards:1", "shards:2", "shards:3", "shards:4", "one-peer",
    "shards:1/2", "shards:1/3", "shards:1/4", "shards:2/2", "shards:2/3", "shards:2/4",
    "shards:3/2", "shards:3/3", "shards:3/4", "shards:4/2", "shards:4/3", "shards:4/4",
    "random:1", "random:2", "random:3", "random:4", "random:5", "random:6", "random:7", "random:8",
    "random:9", "random:10", "random:11", "random:12", "random:13", "random:14", "random:15", "random:16",
]  # fmt: skip
"""``graph=``, besides `malt.Graph`, lists and networkx graphs."""

Consistency: TypeAlias = Literal[
    "bsp", "async", "notify-ack",
    "ssp:0", "ssp:1", "ssp:2", "ssp:3", "ssp:4", "ssp:5", "ssp:6", "ssp:7", "ssp:8", "ssp:9", "ssp:10",
    "ssp:11", "ssp:12", "ssp:13", "ssp:14", "ssp:15", "ssp:16", "ssp:32", "ssp:64",
    "notify-ack:1", "notify-ack:2", "notify-ack:3", "notify-ack:4", "notify-ack:5", "notify-ack:6",
    "notify-ack:7", "notify-ack:8",
]  # fmt: skip
"""``consistency=``."""

FoldName: TypeAlias = Literal["mean", "mean-received", "sum", "min", "max", "replace", "sum-changes", "mean-changes"]
"""``fold=``, besides functions."""

ChangesName: TypeAlias = Literal["sum-changes", "mean-changes"]
"""The folds that add up what ranks have changed."""

OnDeath: TypeAlias = Literal["stop", "continue", "replace"]
"""``on_death=`` of `malt.init`."""

Op: TypeAlias = Literal["mean", "sum", "min", "max"]
"""``op=`` of `malt.allreduce`."""

Sparse: TypeAlias = Literal["model", "gradient"]
"""``sparse=``, besides False."""

Uneven: TypeAlias = Literal["ok", "error"]
"""``uneven=``."""

Start: TypeAlias = Literal["same", "own"]
"""``start=``."""

Wire: TypeAlias = Literal["exact", "bf16", "f16", "int8"]
"""``wire=``."""

Of: TypeAlias = Literal["params", "grads"]
"""``of=`` of `malt.torch.Vector`."""

Transport: TypeAlias = Literal["auto", "shm", "tcp", "inmem"]
"""``transport=`` of `malt.init`."""

Order: TypeAlias = Literal["stride", "block", "shuffle"]
"""``order=`` of `malt.shard`, `malt.deal` and `malt.load`."""

Even: TypeAlias = Literal["pad", "drop"]
"""``even=`` of `malt.shard` and `malt.deal`."""

FileFormat: TypeAlias = Literal["svmlight", "npy", "npz", "csv", "parquet", "idx", "text"]
"""``format=`` of `malt.load`."""

Frame: TypeAlias = Literal["pandas", "polars"]
"""``frame=`` of `malt.load`."""
