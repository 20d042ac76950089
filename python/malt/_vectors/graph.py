"""Dataflow graphs: which rank sends to which."""

from __future__ import annotations

import io
import math
import operator
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

from .. import _lib
from .._guide import lines
from .._job import world
from .._need import need
from .._options import whole
from ..typing import GraphName

if TYPE_CHECKING:
    import matplotlib.axes


class NetworkxGraph(Protocol):
    """A networkx graph, as far as it is looked at: networkx need not be installed."""

    @property
    def nodes(self) -> Any:
        """The ranks."""

    @property
    def adj(self) -> Any:
        """For each node its neighbours."""


GraphLike: TypeAlias = "GraphName | Graph | Iterable[Iterable[SupportsIndex]] | NetworkxGraph"


_ARROWS = 1000
"""Edges that are drawn as arrows; the heads of more would hide each other."""


class Graph:
    """A graph over the ranks 0 … size-1, with its measures.

    An edge from u to v means that u sends to v. ``print`` shows the graph as text, a
    notebook as a picture.

    Parameters
    ----------
    spec : str, list of lists of int, or networkx graph
        A name: ``all``, ``ring``, ``chord``, ``halton``, ``halton-paper``,
        ``random:K`` or ``random:K:SEED``, ``hypercube``, ``star``, ``one-peer``,
        ``butterfly`` or ``butterfly:AxB``, ``shards``, ``shards:K`` or ``shards:K/D``;
        for each rank the list of its receivers; or a networkx graph whose nodes are the
        ranks.
    size : int, optional
        Number of ranks. By default that of the lists or of the networkx graph,
        otherwise of the job.
    allow_disconnected : bool
        Accept a graph in which a rank cannot reach another, so that the models of all
        ranks do not come together.

    Raises
    ------
    ValueError, TypeError
        There is no such graph; a rank is out of range, repeated or sends to itself; a
        rank cannot reach another.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3.4. The sequence that the
    paper prints is ``halton-paper``. For 8, 12, 16, 24 … ranks it splits them into groups
    that never exchange anything; ``halton`` does not.

    Examples
    --------
    >>> g = malt.Graph("halton", 8)
    >>> g.receivers(0)
    [1, 5, 3]
    >>> g.diameter, g.connected, round(g.second_eigenvalue, 3)
    (3, True, 0.5)
    >>> malt.Graph([[1], [2], [0]]).edges
    3
    """

    size: int
    allow_disconnected: bool
    spec: str

    def __init__(self, spec: GraphLike | str, size: int | None = None, *, allow_disconnected: bool = False) -> None:
        if isinstance(spec, Graph):
            size = size or spec.size
            allow_disconnected = allow_disconnected or spec.allow_disconnected
            spec = spec.spec
        if not isinstance(spec, str):
            lists = _lists(spec)
            if size is not None and size != len(lists):
                raise ValueError(
                    lines(f"size={size}", f"the graph lists the receivers of {len(lists)} ranks", "Leave size out.")
                )
            size, spec = len(lists), "lists:" + "/".join(",".join(map(str, out)) for out in lists)
        if size is None:
            size = world.size()
        # What is too large for a graph the library says.
        self.size = whole("size", size, 1, 2**31 - 1, "expected a number of ranks", "a graph has 1 to 32768 ranks")
        self.allow_disconnected = bool(allow_disconnected)
        self.spec = _lib.graph_text(spec, self.size, self.allow_disconnected, "spec")

    def receivers(self, rank: int, clock: int = 1) -> list[int]:
        """Return the receivers of ``rank`` at its ``clock``-th scatter (``clock`` matters for one-peer only)."""
        self._check(rank)
        return _lib.graph_receivers(self.spec, self.size, self.allow_disconnected, clock, [rank])[0]

    def senders(self, rank: int, clock: int = 1) -> list[int]:
        """Return the senders to ``rank`` at their ``clock``-th scatter, lowest first."""
        self._check(rank)
        return [u for u, out in enumerate(self.lists(clock)) if rank in out]

    def lists(self, clock: int = 1) -> list[list[int]]:
        """Return every rank's receivers, in the graph's order."""
        return _lib.graph_receivers(self.spec, self.size, self.allow_disconnected, clock, range(self.size))

    def _check(self, rank: int) -> None:
        if not 0 <= operator.index(rank) < self.size:
            raise ValueError(lines(f"rank {rank}", f"expected 0 to {self.size - 1}"))

    @cached_property
    def _measures(self) -> dict[str, Any]:
        return _lib.graph_measures(self.spec, self.size, self.allow_disconnected)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return int(self._measures["edges"])

    @property
    def degree_min(self) -> int:
        """Fewest receivers that a rank has."""
        return int(self._measures["degree_min"])

    @property
    def degree_max(self) -> int:
        """Most receivers that a rank has."""
        return int(self._measures["degree_max"])

    @property
    def diameter(self) -> int:
        """Hops between the two ranks farthest apart; -1 if a rank cannot reach another."""
        return int(self._measures["diameter"])

    @property
    def connected(self) -> bool:
        """Whether every rank reaches every other."""
        return bool(self._measures["connected"])

    @property
    def second_eigenvalue(self) -> float:
        """Second-largest eigenvalue modulus of the averaging matrix: the smaller, the faster ranks agree."""
        return float(self._measures["second_eigenvalue"])

    @property
    def smallest_real_part(self) -> float:
        """Smallest real part of an eigenvalue of the averaging matrix.

        If it is negative, ranks that exchange gradients instead of models drift apart.
        """
        return float(self._measures["smallest_real_part"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.spec, self.size) == (other.spec, other.size)

    def __hash__(self) -> int:
        return hash((self.spec, self.size))

    def __repr__(self) -> str:
        return f"Graph({self.spec!r}, size={self.size})"

    def __str__(self) -> str:
        return _lib.graph_text(self.spec, self.size, self.allow_disconnected, "text")

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language.

        Examples
        --------
        >>> "0 -> 1" in malt.Graph("ring", 3).to_dot()
        True
        """
        return _lib.graph_text(self.spec, self.size, self.allow_disconnected, "dot")

    def to_svg(self) -> str:
        """Return a drawing of the graph as SVG."""
        return _lib.graph_text(self.spec, self.size, self.allow_disconnected, "svg")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw the graph with matplotlib: ranks on a circle, an arrow per edge.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw in; by default new ones.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        PackageError
            matplotlib is not installed.
        """
        if ax is None:
            plt: Any = need("matplotlib.pyplot", "Graph.plot")
            ax = plt.subplots()[1]
        angles = [math.pi / 2 - 2 * math.pi * n / self.size for n in range(self.size)]
        at = [(math.cos(a), math.sin(a)) for a in angles]
        edges = [(u, v) for u, out in enumerate(self.lists()) for v in out]
        if len(edges) > _ARROWS:
            lines: Any = need("matplotlib.collections", "Graph.plot")
            ax.add_collection(lines.LineCollection([(at[u], at[v]) for u, v in edges], linewidths=0.3, alpha=0.6))
        else:
            for u, v in edges:
                arrow = {
                    "arrowstyle": "->",
                    "shrinkA": 12,
                    "shrinkB": 12,
                    "connectionstyle": "arc3,rad=0.1",
                    "alpha": 0.6,
                }
                ax.annotate("", at[v], at[u], arrowprops=arrow)
        for n, (x, y) in enumerate(at):
            ax.text(x, y, str(n), ha="center", va="center", bbox={"boxstyle": "circle", "facecolor": "white"})
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", title=f"{self._title()}, {self.size} ranks")
        ax.set_axis_off()
        return ax

    def _title(self) -> str:
        return self.spec if len(self.spec) <= 40 else f"{self.spec[:39]}…"

    def _picture(self, form: str) -> bytes:
        """Return `plot` as "png" or "pdf"."""
        figure = need("matplotlib.figure", f"a graph as {form}").Figure(figsize=(6.4, 6.4))
        self.plot(figure.subplots())
        data = io.BytesIO()
        figure.savefig(data, format=form, bbox_inches="tight")
        return data.getvalue()


def as_graph(graph: GraphLike, size: int) -> tuple[str, bool]:
    """Return the spec of a graph for ``size`` ranks, and whether it may be disconnected."""
    if isinstance(graph, str):
        return graph, False
    g = graph if isinstance(graph, Graph) else Graph(graph)
    if g.size != size:
        raise ValueError(lines(f"{g!r} is for {g.size} ranks", f"the job has {size}", "Make it with size=malt.size()."))
    return g.spec, g.allow_disconnected


def _lists(spec: object) -> list[list[int]]:
    """Read adjacency lists, or a networkx graph, as lists of receivers."""
    if hasattr(spec, "nodes") and hasattr(spec, "adj"):
        nodes = set(spec.nodes)
        if nodes != set(range(len(nodes))):
            raise ValueError(
                lines(
                    f"the networkx graph has the nodes {sorted(nodes, key=repr)[:5]} …",
                    f"expected 0 to {len(nodes) - 1}",
                    "Relabel them with networkx.convert_node_labels_to_integers.",
                )
            )
        spec = [list(spec.adj[n]) for n in range(len(nodes))]
    try:
        return [[operator.index(r) for r in out] for out in spec]  # type: ignore[attr-defined]
    except TypeError:
        raise TypeError(
            lines(
                f"graph={spec!r}",
                "expected a name, a list of receivers per rank, malt.Graph or a networkx graph",
            )
        ) from None
