package graphs

import (
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/traverse"
)

// Measures say how much a graph sends and how well it mixes.
type Measures struct {
	Size int
	// Edges is the number of updates that one scatter of every rank sends, and
	// DegreeMin and DegreeMax bound the receivers of one scatter of one rank.
	Edges, DegreeMin, DegreeMax int
	// Diameter is the number of hops between the two ranks farthest apart, over
	// edges of any clock; -1 if some rank cannot reach some other.
	Diameter  int
	Connected bool
	// SecondEigenvalue is the second-largest modulus among the eigenvalues of
	// the averaging matrix, in which each rank takes the plain mean of its own
	// value and of what it gets: the factor by which ranks that only average
	// come closer at each step. 0 is at once, 1 is never. For a graph that
	// varies it is the mean factor per clock: the largest modulus, but for the
	// eigenvalue of the all-equal vector, of the product over a period, to the
	// power of one over the period.
	SecondEigenvalue float64
	// SmallestRealPart is the smallest real part among all eigenvalues of that
	// matrix; for a graph that varies, among those of every clock's own matrix,
	// as every step applies one of them. Below 0, gradients (rather than
	// models) averaged over the graph drive replicas apart.
	SmallestRealPart float64
}

// Measure computes all measures. The eigenvalues of flat graphs come from a
// Fourier transform; those of others take time with the cube of the size (some
// 5 s for 1,024 ranks), so more than MaxMeasured ranks are refused.
func (g *Graph) Measure() (Measures, error) {
	if g.size == 0 {
		return Measures{}, nil
	}
	m := Measures{Size: g.size}
	m.DegreeMin = g.size
	for rank := range g.size {
		n := g.degree(rank)
		m.Edges += n
		m.DegreeMin = min(m.DegreeMin, n)
		m.DegreeMax = max(m.DegreeMax, n)
	}
	s, err := g.spectrum()
	if err != nil {
		return Measures{}, err
	}
	m.SecondEigenvalue, m.SmallestRealPart = s.second, s.smallest
	m.Connected = len(g.components()) == 1
	m.Diameter = -1
	if m.Connected {
		m.Diameter = g.diameter()
	}
	return m, nil
}

// degree returns the number of receivers of one scatter.
func (g *Graph) degree(rank int) int {
	if g.receivers != nil {
		return len(g.receivers[rank])
	}
	return len(g.at(1))
}

// diameter of a connected graph: the largest depth of breadth-first walks from
// every rank; in a flat graph all ranks see the same.
func (g *Graph) diameter() int {
	starts := g.size
	if g.receivers == nil {
		starts = 1
	}
	d := newDirected(g)
	most := 0
	for rank := range starts {
		most = max(most, eccentricity(d, d.nodes[rank]))
	}
	return most
}

// eccentricity returns the hops to the farthest node. The walk ends as soon as
// all nodes are seen, which on dense graphs is long before all edges are.
func eccentricity(d *directed, from graph.Node) int {
	deepest := 0 // depth of the node whose receivers are being visited
	farthest, seen := 0, 0
	walk := traverse.BreadthFirst{Visit: func(n graph.Node) {
		seen++
		if n.ID() != from.ID() {
			farthest = deepest + 1
		}
	}}
	walk.Walk(d, from, func(_ graph.Node, depth int) bool {
		deepest = depth
		return seen == len(d.nodes)
	})
	return farthest
}
