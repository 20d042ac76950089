package graphs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/quick"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// hops is the slow twin of connectivity and diameter: shortest paths between
// all pairs by Floyd and Warshall; far where there is none.
func hops(g *Graph) [][]int {
	d := make([][]int, g.Size())
	for from := range d {
		d[from] = slices.Repeat([]int{far}, g.Size())
		for _, to := range g.AllReceivers(from) {
			d[from][to] = 1
		}
		d[from][from] = 0
	}
	for via := range d {
		for from := range d {
			for to := range d {
				d[from][to] = min(d[from][to], d[from][via]+d[via][to])
			}
		}
	}
	return d
}

const far = 1 << 20

// checkAgainstTwin compares everything that follows from reachability.
func checkAgainstTwin(t *testing.T, g *Graph) {
	t.Helper()
	d := hops(g)
	diameter := 0
	for _, row := range d {
		diameter = max(diameter, slices.Max(row))
	}
	m := measure(t, g)
	err := g.CheckConnected()
	if diameter < far {
		if err != nil || !m.Connected || m.Diameter != diameter {
			t.Fatalf("%s of %d has diameter %d; got %+v, %v", g, g.Size(), diameter, m, err)
		}
		return
	}
	var e *DisconnectedError
	if !errors.As(err, &e) || m.Connected || m.Diameter != -1 {
		t.Fatalf("%s of %d is not connected; got %+v, %v", g, g.Size(), m, err)
	}
	checkGroups(t, g, d, e)
}

func checkGroups(t *testing.T, g *Graph, d [][]int, e *DisconnectedError) {
	t.Helper()
	group := make(map[int]int)
	for i, ranks := range e.Groups {
		if !slices.IsSorted(ranks) || i > 0 && ranks[0] < e.Groups[i-1][0] {
			t.Fatalf("%s: groups are out of order: %v", g, e.Groups)
		}
		for _, rank := range ranks {
			group[rank] = i
		}
	}
	if len(group) != g.Size() {
		t.Fatalf("%s: groups %v are not all of %d ranks", g, e.Groups, g.Size())
	}
	joined := false
	for a := range d {
		for b := range d {
			if mutual := d[a][b] < far && d[b][a] < far; mutual != (group[a] == group[b]) {
				t.Fatalf("%s: ranks %d and %d are wrongly grouped in %v", g, a, b, e.Groups)
			}
			if group[a] != group[b] && d[a][b] < far {
				joined = true
				if e.Deaf == group[b] {
					t.Fatalf("%s: group %v is reached by rank %d", g, e.Groups[e.Deaf], a)
				}
			}
		}
	}
	if joined != (e.Deaf >= 0) {
		t.Fatalf("%s: groups joined %v, but Deaf is %d", g, joined, e.Deaf)
	}
}

func TestConnectivityAgainstTwin(t *testing.T) {
	for size := 1; size <= 40; size++ {
		for _, spec := range specs(size) {
			checkAgainstTwin(t, parse(t, spec, size))
		}
	}
}

func TestConnectivityOfAnyLists(t *testing.T) {
	property := func(seed uint64) bool {
		g, err := FromLists(randomLists(seed))
		if err != nil {
			t.Error(err)
			return false
		}
		checkAgainstTwin(t, g)
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 1000}); err != nil {
		t.Error(err)
	}
}

// Every named graph but halton-paper is connected for every N.
func TestNamedGraphsAreConnected(t *testing.T) {
	for size := 1; size <= 200; size++ {
		for _, spec := range everywhere() {
			if err := parse(t, spec, size).CheckConnected(); err != nil && spec != "halton-paper" {
				t.Error(err)
			}
		}
	}
}

// The known trap of MALT section 3.4: the sizes at which the printed sequence
// splits, and how.
func TestMALTSection34_KnownTrap(t *testing.T) {
	var split []int
	for size := 1; size <= 64; size++ {
		if parse(t, "halton-paper", size).CheckConnected() != nil {
			split = append(split, size)
		}
	}
	if want := []int{8, 12, 16, 24, 32, 40, 48, 56, 64}; !slices.Equal(split, want) {
		t.Errorf("halton-paper splits at %v, want %v", split, want)
	}
	var e *DisconnectedError
	if err := parse(t, "halton-paper", 8).CheckConnected(); !errors.As(err, &e) {
		t.Fatal(err)
	}
	if got := fmt.Sprint(e.Groups); got != "[[0 2 4 6] [1 3 5 7]]" || e.Deaf != -1 {
		t.Errorf("halton-paper of 8 splits into %s, Deaf %d", got, e.Deaf)
	}
}

func TestDisconnectedSentences(t *testing.T) {
	for _, c := range []struct {
		spec  string
		size  int
		parts []string
	}{
		{"halton-paper", 8, []string{"halton-paper of 8 ranks is not strongly connected", "2 groups", "{0 2 4 6} {1 3 5 7}", "replicas would drift apart", "Use halton", "allow_disconnected"}},
		{"halton-paper", 64, []string{"8 groups", "{0 8 16 24 32 40 48 56}", "and 6 more"}},
		{"lists:1/0/1", 3, []string{"rank 2 receives from no other rank", "let another rank, such as 0, send to rank 2"}},
		{"lists:1/0,2/3/2", 4, []string{"ranks 0 1 receive from no other rank", "such as 2, send to rank 0"}},
		{"lists:1/0/", 3, []string{"2 groups", "{0 1} {2}"}},
	} {
		wantError(t, parse(t, c.spec, c.size).CheckConnected(), c.parts...)
	}
}

// The view that gonum's algorithms get is the same graph.
func TestDirectedView(t *testing.T) {
	for size := 1; size <= 17; size++ {
		for _, spec := range specs(size) {
			g := parse(t, spec, size)
			want := simple.NewDirectedGraph()
			for rank := range size {
				want.AddNode(simple.Node(rank))
			}
			for from := range size {
				for _, to := range g.AllReceivers(from) {
					want.SetEdge(simple.Edge{F: simple.Node(from), T: simple.Node(to)})
				}
			}
			d := newDirected(g)
			if !topo.Equal(d, want) {
				t.Fatalf("%s of %d: gonum sees another graph", spec, size)
			}
			checkView(t, g, d, want)
		}
	}
}

func checkView(t *testing.T, g *Graph, d *directed, want *simple.DirectedGraph) {
	t.Helper()
	for u := int64(-1); u <= int64(g.Size()); u++ {
		if (d.Node(u) == nil) != (want.Node(u) == nil) {
			t.Fatalf("%s: node %d: %v, want %v", g, u, d.Node(u), want.Node(u))
		}
		if d.To(u).Len() != want.To(u).Len() || d.From(u).Len() != want.From(u).Len() {
			t.Fatalf("%s: node %d has %d from, %d to", g, u, d.From(u).Len(), d.To(u).Len())
		}
		for v := int64(-1); v <= int64(g.Size()); v++ {
			if d.HasEdgeFromTo(u, v) != want.HasEdgeFromTo(u, v) || d.HasEdgeBetween(u, v) != want.HasEdgeBetween(u, v) ||
				(d.Edge(u, v) == nil) != (want.Edge(u, v) == nil) {
				t.Fatalf("%s: edge %d to %d differs", g, u, v)
			}
		}
	}
}
