"""What a vector or segment has done since it was made."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _lib

RDMA = ("", "on", "none yet", "off", "no device", "no library", "memlock", "encrypted", "failed")
"""What `Edge.rdma` can be, by MALT_RDMA_…."""


class Edge(NamedTuple):
    """Counts of the updates to and from one neighbour."""

    rank: int
    """The neighbour."""
    sent_messages: int
    """Updates sent to it."""
    sent_bytes: int
    """Their payload, in bytes."""
    folded_messages: int
    """Updates from it that were folded."""
    folded_bytes: int
    """Their payload, in bytes."""
    overwritten: int
    """In ``async`` and ``ssp``: updates from it that are never folded, because a newer one replaced
    them, they were too old, a collective call counted them as seen, or the vector was closed."""
    age_mean: float
    """Mean age of the folded updates, in scatters; nan if there are none."""
    age_max: int
    """Largest age of a folded update, in scatters."""
    waited: float
    """Seconds for which this rank waited for it. Of a wait for several ranks each has its share."""
    rdma_bytes: int
    """Payload of all vectors that [RDMA](rdma) has put into its memory, in bytes."""
    rdma: str
    """Whether updates go to it by RDMA: ``"on"`` or ``"none yet"``, or why not: ``"off"``, ``"no device"``,
    ``"no library"``, ``"memlock"``, ``"encrypted"``, ``"failed"``; ``""`` on the same machine."""


class Stats(NamedTuple):
    """Totals of a vector or segment on this rank, and its edges."""

    scatters: int
    """Number of scatters."""
    gathers: int
    """Number of gathers."""
    scatter_seconds: float
    """Seconds spent copying and publishing."""
    wait_seconds: float
    """Seconds spent waiting for other ranks."""
    fold_seconds: float
    """Seconds spent in built-in folds."""
    edges: tuple[Edge, ...]
    """One entry per neighbour, by rank."""

    @property
    def sent_bytes(self) -> int:
        """Payload sent to all neighbours, in bytes."""
        return sum(edge.sent_bytes for edge in self.edges)

    def __str__(self) -> str:
        lines = [
            f"{self.scatters} scatters, {self.gathers} gathers; seconds: {self.scatter_seconds:.3g} scattering, "
            f"{self.wait_seconds:.3g} waiting, {self.fold_seconds:.3g} folding",
            "rank      sent     bytes    folded     bytes  overwritten  mean age  max age  waited s  by RDMA",
        ]
        lines += [
            f"{e.rank:4} {e.sent_messages:9} {e.sent_bytes:9} {e.folded_messages:9} {e.folded_bytes:9} "
            f"{e.overwritten:12} {e.age_mean:9.2f} {e.age_max:8} {e.waited:9.3g} {e.rdma_bytes:8} {e.rdma}"
            for e in self.edges
        ]
        return "\n".join(lines)


def stats(of: _lib.Object) -> Stats:
    """Read the counters of a vector or segment."""
    totals, edges = of.stats()
    return Stats(**totals, edges=tuple(map(_edge, sorted(edges, key=lambda e: e["rank"]))))


def _edge(fields: dict[str, Any]) -> Edge:
    ages, n = fields.pop("age_sum"), fields["folded_messages"]
    fields["rdma"] = RDMA[fields["rdma"]]
    return Edge(**fields, age_mean=ages / n if n else float("nan"))
