package graphs

import (
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"gonum.org/v1/gonum/graph/simple"
)

var _ graph.Directed = (*directed)(nil)

// directed shows a Graph to gonum's algorithms: node IDs are ranks, and an edge
// counts if it is used at any clock.
type directed struct {
	g     *Graph
	nodes []graph.Node
}

func newDirected(g *Graph) *directed {
	nodes := make([]graph.Node, g.size)
	for rank := range nodes {
		nodes[rank] = simple.Node(rank)
	}
	return &directed{g, nodes}
}

func (d *directed) Node(id int64) graph.Node {
	if id < 0 || id >= int64(len(d.nodes)) {
		return nil
	}
	return d.nodes[id]
}

func (d *directed) Nodes() graph.Nodes { return ordered(d.nodes) }

func (d *directed) From(id int64) graph.Nodes { return d.pick(d.g.AllReceivers(int(id))) }

func (d *directed) To(id int64) graph.Nodes { return d.pick(d.g.AllSenders(int(id))) }

func (d *directed) HasEdgeFromTo(from, to int64) bool {
	return d.g.sends(int(from), int(to))
}

func (d *directed) HasEdgeBetween(x, y int64) bool {
	return d.HasEdgeFromTo(x, y) || d.HasEdgeFromTo(y, x)
}

func (d *directed) Edge(from, to int64) graph.Edge {
	if !d.HasEdgeFromTo(from, to) {
		return nil
	}
	return simple.Edge{F: d.nodes[from], T: d.nodes[to]}
}

func (d *directed) pick(ranks []int) graph.Nodes {
	nodes := make([]graph.Node, len(ranks))
	for i, rank := range ranks {
		nodes[i] = d.nodes[rank]
	}
	return ordered(nodes)
}

// ordered keeps to gonum's rule that an empty set of nodes is graph.Empty.
func ordered(nodes []graph.Node) graph.Nodes {
	if len(nodes) == 0 {
		return graph.Empty
	}
	return iterator.NewOrderedNodes(nodes)
}
