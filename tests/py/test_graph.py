"""malt.Graph: the core's graphs in Python's clothes."""

from __future__ import annotations

import sys

import networkx as nx
import pytest

import malt

HALTON = {
    2: [1],
    3: [1],
    4: [1, 3],
    5: [1, 3],
    6: [1, 4],
    7: [1, 5],
    8: [1, 5, 3],
    9: [1, 5, 3],
    10: [1, 6, 3],
    11: [1, 6, 4],
    12: [1, 7, 4],
    13: [1, 8, 4],
    14: [1, 8, 5],
    15: [1, 9, 5],
    16: [1, 9, 5, 13],
    20: [1, 11, 6, 16],
    24: [1, 13, 7, 19],
    32: [1, 17, 9, 25, 5],
    48: [1, 25, 13, 37, 7],
    64: [1, 33, 17, 49, 9, 41],
}


@pytest.mark.parametrize(("size", "receivers"), HALTON.items())
def test_halton_from_rank_0(size: int, receivers: list[int]) -> None:
    g = malt.Graph("halton", size)
    assert g.receivers(0) == receivers
    assert g.connected
    assert g.lists()[3 % size] == [(3 + offset) % size for offset in receivers]


def test_measures() -> None:
    g = malt.Graph("halton", 8)
    assert (g.edges, g.degree_min, g.degree_max, g.diameter, g.connected) == (24, 3, 3, 3, True)
    assert round(g.second_eigenvalue, 3) == 0.5
    assert round(g.smallest_real_part, 2) == -0.5


def test_lists_keep_their_order() -> None:
    g = malt.Graph([[2, 1], [0], [0]])
    assert (g.size, g.receivers(0), g.senders(0), g.spec) == (3, [2, 1], [1, 2], "lists:2,1/0/0")
    assert malt.Graph(g.spec, 3) == g
    assert len({malt.Graph(g.spec, 3), g}) == 1


def test_networkx() -> None:
    g = malt.Graph(nx.DiGraph([(0, 2), (2, 1), (1, 0)]))
    assert g.lists() == [[2], [0], [1]]
    assert malt.Graph(nx.cycle_graph(4)).lists() == [[1, 3], [0, 2], [1, 3], [2, 0]]  # undirected: both ways


@pytest.mark.parametrize("n", [600, 2000])
def test_lists_of_many_edges(n: int) -> None:
    lists = [[(r + k) % n for k in range(1, 51)] for r in range(n)]
    g = malt.Graph(lists)
    assert len(g.spec) > 64 << 10
    assert g.lists() == lists
    assert malt.Graph(g) == g
    assert malt.Graph(g).receivers(n - 1)[0] == 0


def test_a_networkx_graph_of_many_edges() -> None:
    nx = pytest.importorskip("networkx", reason="networkx is optional")
    g = malt.Graph(nx.complete_graph(150))
    assert (g.edges, g.diameter) == (150 * 149, 1)


def test_a_text_that_is_too_long_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("malt._lib.convert.MAX_TEXT", 30)
    with pytest.raises(ValueError, match=r"malt: 'lists:1/2/3/.*'… has 55 bytes\na text has at most 30"):
        malt.Graph([[(r + 1) % 20] for r in range(20)])


def test_of_the_papers_sequence_is_refused_where_it_splits_the_ranks() -> None:
    with pytest.raises(ValueError, match="not strongly connected"):
        malt.Graph("halton-paper", 8)
    g = malt.Graph("halton-paper", 8, allow_disconnected=True)
    assert (g.receivers(0), g.connected, g.diameter) == ([4, 2, 6], False, -1)
    assert malt.Graph(g).allow_disconnected


def test_one_peer_changes_with_the_clock() -> None:
    g = malt.Graph("one-peer", 8)
    assert sorted(g.receivers(0, clock)[0] for clock in (1, 2, 3)) == [1, 2, 4]


def test_size_is_the_jobs_by_default() -> None:
    assert malt.Graph("all").size == 1


def test_drawings() -> None:
    g = malt.Graph("ring", 4)
    assert repr(g) == "Graph('ring', size=4)"
    assert "ring, 4 ranks" in str(g)
    assert g._repr_svg_() == g.to_svg()
    assert g.to_svg().startswith("<svg")
    assert "0 -> 1" in g.to_dot()


def test_plot_draws_every_edge() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is optional")
    matplotlib.use("Agg")
    ax = malt.Graph("halton", 8).plot()
    assert len(ax.texts) == 24 + 8  # an annotation per edge, a label per rank
    assert malt.Graph("ring", 3).plot(ax) is ax


def test_plot_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(malt.PackageError, match=r"(?s)Graph.plot needs matplotlib, .*: pip install matplotlib"):
        malt.Graph("ring", 3).plot()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: malt.Graph("rign", 4), '"ring"'),
        (lambda: malt.Graph("ring", 0), "size=0"),
        (lambda: malt.Graph("ring", -3), "size=-3"),
        (lambda: malt.Graph("ring", "four"), "size='four'"),
        (lambda: malt.Graph("hypercube", 6), "6"),
        (lambda: malt.Graph("random:9", 4), "9"),
        (lambda: malt.Graph([[1], [0]], 3), "receivers of 2 ranks"),
        (lambda: malt.Graph([[1], [5]]), "5"),
        (lambda: malt.Graph("ring", 4).receivers(4), "rank 4\nexpected 0 to 3"),
        (lambda: malt.Graph("ring", 4).senders(-1), "rank -1"),
        (lambda: malt.Graph(3.5), "graph=3.5"),
    ],
)
def test_bad_input(make: object, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()
