package graphs

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The table of DESIGN, written out for small sizes: receivers and senders, in
// order.
func TestNeighbours(t *testing.T) {
	for _, c := range []struct {
		spec               string
		size, rank         int
		clock              uint64
		receivers, senders []int
	}{
		{"all", 4, 1, 1, []int{2, 3, 0}, []int{0, 3, 2}},
		{"ring", 4, 3, 1, []int{0}, []int{2}},
		{"chord", 8, 0, 1, []int{4, 2, 1}, []int{4, 6, 7}},
		{"chord", 10, 3, 1, []int{8, 5, 4}, []int{8, 1, 2}},
		{"halton", 8, 0, 1, []int{1, 5, 3}, []int{7, 3, 5}},
		{"halton", 4, 2, 1, []int{3, 1}, []int{1, 3}},
		{"halton-paper", 8, 0, 1, []int{4, 2, 6}, []int{4, 6, 2}},
		{"halton-paper", 16, 0, 1, []int{8, 4, 12, 2}, []int{8, 12, 4, 14}},
		{"hypercube", 8, 5, 1, []int{4, 7, 1}, []int{1, 4, 7}},
		{"star", 4, 0, 1, []int{1, 2, 3}, []int{1, 2, 3}},
		{"star", 4, 2, 1, []int{0}, []int{0}},
		{"one-peer", 8, 1, 1, []int{5}, []int{5}},
		{"one-peer", 8, 1, 2, []int{3}, []int{7}},
		{"one-peer", 8, 1, 3, []int{2}, []int{0}},
		{"one-peer", 8, 1, 4, []int{5}, []int{5}},
		{"one-peer", 8, 1, 0, []int{2}, []int{0}},
		{"one-peer", 8, 1, math.MaxUint64, []int{2}, []int{0}}, // 2^64-1 is a multiple of 3
		{"lists:2,1/2/0", 3, 0, 1, []int{2, 1}, []int{2}},
		{"lists:2,1/2/0", 3, 2, 1, []int{0}, []int{0, 1}},
	} {
		g := parse(t, c.spec, c.size)
		if got := g.Receivers(c.rank, c.clock); !slices.Equal(got, c.receivers) {
			t.Errorf("%s of %d: rank %d at clock %d sends to %v, want %v", c.spec, c.size, c.rank, c.clock, got, c.receivers)
		}
		if got := g.Senders(c.rank, c.clock); !slices.Equal(got, c.senders) {
			t.Errorf("%s of %d: rank %d at clock %d gets from %v, want %v", c.spec, c.size, c.rank, c.clock, got, c.senders)
		}
	}
}

// What must hold of every graph at every size and clock.
func TestEveryGraph(t *testing.T) {
	for size := 1; size <= 33; size++ {
		for _, spec := range specs(size) {
			g := parse(t, spec, size)
			if g.Size() != size {
				t.Errorf("%s of %d: Size is %d", spec, size, g.Size())
			}
			for clock := range uint64(2*g.Period() + 1) {
				checkNeighbours(t, fmt.Sprintf("%s of %d at clock %d", spec, size, clock), size,
					func(r int) []int { return g.Receivers(r, clock) }, func(r int) []int { return g.Senders(r, clock) })
			}
			checkNeighbours(t, fmt.Sprintf("%s of %d over all clocks", spec, size), size, g.AllReceivers, g.AllSenders)
			checkSpec(t, g)
		}
	}
}

// checkNeighbours: in range, not oneself, not twice, and senders are exactly
// the other end of receivers.
func checkNeighbours(t *testing.T, what string, size int, receivers, senders func(int) []int) {
	t.Helper()
	from := make([][]int, size)
	for rank := range size {
		for _, to := range receivers(rank) {
			if to < 0 || to >= size || to == rank || slices.Contains(from[to], rank) {
				t.Fatalf("%s: rank %d sends to %v", what, rank, receivers(rank))
			}
			from[to] = append(from[to], rank)
		}
	}
	for rank := range size {
		if got := sorted(senders(rank)); !slices.Equal(got, from[rank]) {
			t.Fatalf("%s: rank %d gets from %v, but %v send to it", what, rank, got, from[rank])
		}
	}
}

// checkSpec: String is a spec of the same graph, and the same text again.
func checkSpec(t *testing.T, g *Graph) {
	t.Helper()
	again, err := Parse(g.String(), g.Size())
	if err != nil {
		t.Fatalf("%s of %d does not parse back: %v", g, g.Size(), err)
	}
	if again.String() != g.String() || again.Varies() != g.Varies() {
		t.Fatalf("%s of %d parses back as %s", g, g.Size(), again)
	}
	for rank := range g.Size() {
		if !slices.Equal(again.AllReceivers(rank), g.AllReceivers(rank)) || !slices.Equal(again.AllSenders(rank), g.AllSenders(rank)) {
			t.Fatalf("%s of %d: rank %d has other neighbours after parsing back", g, g.Size(), rank)
		}
	}
}

func TestAllClocksIsTheUnion(t *testing.T) {
	for size := 1; size <= 70; size++ {
		g := parse(t, "one-peer", size)
		for rank := range size {
			var union []int
			for clock := range uint64(g.Period()) {
				union = append(union, g.Receivers(rank, clock+1)...)
			}
			if got := g.AllReceivers(rank); !slices.Equal(got, union) {
				t.Fatalf("one-peer of %d: rank %d sends to %v, its clocks give %v", size, rank, got, union)
			}
			if chord := parse(t, "chord", size).AllReceivers(rank); !slices.Equal(chord, union) {
				t.Fatalf("one-peer of %d: rank %d uses %v, chord %v", size, rank, union, chord)
			}
		}
	}
}

func TestVaries(t *testing.T) {
	for size := 1; size <= 9; size++ {
		for _, spec := range specs(size) {
			want := spec == "one-peer" && size >= 4 // smaller ones have one receiver or none
			g := parse(t, spec, size)
			if g.Varies() != want || (g.Period() > 1) != want {
				t.Errorf("%s of %d: Varies %v, Period %d", spec, size, g.Varies(), g.Period())
			}
		}
	}
}

func TestCallersOwnTheSlices(t *testing.T) {
	for _, spec := range specs(8) {
		g := parse(t, spec, 8)
		for _, neighbours := range []func() []int{
			func() []int { return g.Receivers(2, 1) }, func() []int { return g.Senders(2, 1) },
			func() []int { return g.AllReceivers(2) }, func() []int { return g.AllSenders(2) },
		} {
			first := neighbours()
			want := slices.Clone(first)
			for i := range first {
				first[i] = -1
			}
			if got := neighbours(); !slices.Equal(got, want) {
				t.Errorf("%s: a caller's write changed %v to %v", spec, want, got)
			}
		}
	}
}

func TestRankOutside(t *testing.T) {
	for _, spec := range specs(5) {
		g := parse(t, spec, 5)
		for _, rank := range []int{-1, 5, math.MaxInt, math.MinInt} {
			if n := len(g.Receivers(rank, 1)) + len(g.Senders(rank, 1)) + len(g.AllReceivers(rank)) + len(g.AllSenders(rank)); n != 0 {
				t.Errorf("%s of 5: rank %d has %d neighbours", spec, rank, n)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, size := range []int{-1, 0, MaxSize + 1, math.MinInt, math.MaxInt} {
		_, err := Parse("ring", size)
		wantError(t, err, fmt.Sprint(size), "1 to 32768 ranks")
	}
	for _, spec := range everywhere() {
		if g := parse(t, spec, MaxSize); len(g.Receivers(MaxSize-1, 1)) == 0 {
			t.Errorf("%s: the last of %d ranks has no receivers", spec, MaxSize)
		}
	}
}

// The zero Graph is of no use, but harmless.
func TestZeroGraph(t *testing.T) {
	var g Graph
	if m := measure(t, &g); m != (Measures{}) || g.Size() != 0 || g.CheckConnected() != nil || g.Receivers(0, 1) != nil {
		t.Errorf("zero Graph: %+v", m)
	}
	for _, format := range []string{"spec", "text", "dot", "svg"} {
		if _, err := g.Render(format); err != nil {
			t.Error(err)
		}
	}
}
