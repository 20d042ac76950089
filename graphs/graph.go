package graphs

import (
	"slices"
	"strings"

	"malt/internal/say"
)

// MaxSize is the largest number of ranks a graph may have. It bounds what a
// mistyped number can cost, and keeps any number of edges within the int32 that
// the C header gives it.
const MaxSize = 1 << 15

// Graph says which rank sends to which. It is immutable and may be used by any
// number of goroutines. The zero Graph has no ranks; Parse and FromLists make
// useful ones.
//
// A graph is held in one of two forms. Flat graphs look the same from every
// rank and keep only their offsets; all others keep both directions as lists.
type Graph struct {
	spec string
	size int

	offsets []int // flat: rank n sends to (n + offset) mod size
	onePeer bool  // flat, and each clock uses one of the offsets
	ranks   []int // flat, among these ranks (Among): rank ranks[n] has place n; nil: all

	receivers, senders [][]int // otherwise; nil in a flat graph
	degrees            []int   // of a butterfly: ranks of a group, by stage
	keepers, fanout    int     // of shards: ranks that keep a part, and to how many a rank sends the sum of one
}

// Parse makes the graph that spec names, for size ranks. The package comment
// lists what spec may be. A graph that is not strongly connected is made all the
// same: CheckConnected is what refuses it.
func Parse(spec string, size int) (*Graph, error) {
	name, arg, hasArg := strings.Cut(spec, ":")
	f, ok := find(name)
	if !ok {
		return nil, say.Unknown(nil, "graph", name, Names()...)
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	switch {
	case f.usage == "" && hasArg:
		return nil, say.Errorf(nil, "graph %s takes no argument, got %s", name, quote(arg)).Try("Write %s alone.", name)
	case f.usage != "" && !f.optional && !hasArg, f.optional && hasArg && arg == "":
		return nil, say.Errorf(nil, "graph %s needs an argument", name).Try("Write %s.", f.usage)
	}
	g, err := f.build(size, arg)
	if err != nil {
		return nil, err
	}
	if g.spec == "" {
		g.spec = name
	}
	return g, nil
}

func checkSize(size int) error {
	if size < 1 || size > MaxSize {
		return say.Errorf(nil, "a graph of size %d: expected 1 to %d ranks", size, MaxSize)
	}
	return nil
}

// String returns the canonical spec: Parse(g.String(), g.Size()) makes the same
// graph again, with the same order of neighbours.
func (g *Graph) String() string { return g.spec }

// Size returns the number of ranks.
func (g *Graph) Size() int { return g.size }

// Varies reports whether receivers depend on the clock.
func (g *Graph) Varies() bool { return g.onePeer && len(g.offsets) > 1 }

// Receivers returns the ranks that rank sends to at its clock-th scatter, in
// the graph's order, the first being the most useful. Only one-peer looks at
// the clock, which starts at 1. The slice is the caller's. A rank outside the
// graph has no neighbours.
func (g *Graph) Receivers(rank int, clock uint64) []int {
	return g.neighbours(rank, g.at(clock), +1)
}

// Senders returns the ranks whose clock-th scatter goes to rank: for a flat
// graph in the order of its offsets, otherwise by rank.
func (g *Graph) Senders(rank int, clock uint64) []int {
	return g.neighbours(rank, g.at(clock), -1)
}

// AllReceivers returns every rank that rank may ever send to: Receivers over
// all clocks.
func (g *Graph) AllReceivers(rank int) []int { return g.neighbours(rank, g.offsets, +1) }

// AllSenders returns every rank that may ever send to rank.
func (g *Graph) AllSenders(rank int) []int { return g.neighbours(rank, g.offsets, -1) }

// Period returns the number of clocks after which receivers repeat: 1 unless
// the graph varies.
func (g *Graph) Period() int {
	if g.Varies() {
		return len(g.offsets)
	}
	return 1
}

// at returns the offsets in use at a clock. Clock 1 uses the first; clock 0,
// before the first scatter, belongs to the end of a period.
func (g *Graph) at(clock uint64) []int {
	if !g.Varies() {
		return g.offsets
	}
	n := uint64(len(g.offsets))
	i := (clock%n + n - 1) % n
	return g.offsets[i : i+1]
}

func (g *Graph) neighbours(rank int, offsets []int, direction int) []int {
	place, places := rank, g.size
	if g.ranks != nil {
		var in bool
		if place, in = slices.BinarySearch(g.ranks, rank); !in {
			return nil
		}
		places = len(g.ranks)
	}
	switch {
	case rank < 0 || rank >= g.size:
		return nil
	case g.receivers != nil && direction > 0:
		return slices.Clone(g.receivers[rank])
	case g.receivers != nil:
		return slices.Clone(g.senders[rank])
	}
	out := make([]int, len(offsets))
	for i, o := range offsets {
		out[i] = (place + direction*o + places) % places
		if g.ranks != nil {
			out[i] = g.ranks[out[i]]
		}
	}
	return out
}

// sends reports whether one rank sends to another at any clock.
func (g *Graph) sends(from, to int) bool {
	switch {
	case min(from, to) < 0 || max(from, to) >= g.size:
		return false
	case g.receivers != nil:
		return slices.Contains(g.receivers[from], to)
	}
	return slices.Contains(g.offsets, (to-from+g.size)%g.size)
}
