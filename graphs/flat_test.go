package graphs

import (
	"math/bits"
	"slices"
	"testing"
)

// The list of reference for rank 0 of halton.
func TestHaltonReference(t *testing.T) {
	for size, want := range map[int][]int{
		1: {}, 2: {1}, 3: {1}, 4: {1, 3}, 5: {1, 3}, 6: {1, 4}, 7: {1, 5}, 8: {1, 5, 3}, 9: {1, 5, 3},
		10: {1, 6, 3}, 11: {1, 6, 4}, 12: {1, 7, 4}, 13: {1, 8, 4}, 14: {1, 8, 5}, 15: {1, 9, 5},
		16: {1, 9, 5, 13}, 20: {1, 11, 6, 16}, 24: {1, 13, 7, 19}, 32: {1, 17, 9, 25, 5},
		48: {1, 25, 13, 37, 7}, 64: {1, 33, 17, 49, 9, 41},
	} {
		if got := parse(t, "halton", size).Receivers(0, 1); !slices.Equal(got, want) {
			t.Errorf("halton of %d: rank 0 sends to %v, want %v", size, got, want)
		}
	}
}

// MALT section 3.4: N log N updates in place of N(N-1). Offsets never repeat and
// are never 0, so none is lost; twice over, since duplicates could only show at
// sizes where the floors of two terms meet.
func TestMALTSection34_HaltonSendsNLogN(t *testing.T) {
	for size := 1; size <= 2048; size++ {
		for _, spec := range []string{"halton", "halton-paper", "chord"} {
			offsets := parse(t, spec, size).Receivers(0, 1)
			distinct := slices.Compact(sorted(offsets))
			want := bits.Len(uint(size)) - 1
			if len(offsets) != want || len(distinct) != want || slices.Contains(offsets, 0) {
				t.Fatalf("%s of %d: %v, want %d different offsets", spec, size, offsets, want)
			}
		}
	}
	for size := 1; size <= 200; size++ {
		m := measure(t, parse(t, "halton", size))
		if want := size * (bits.Len(uint(size)) - 1); m.Edges != want {
			t.Errorf("halton of %d has %d edges, want %d", size, m.Edges, want)
		}
	}
	if all, halton := measure(t, parse(t, "all", 8)), measure(t, parse(t, "halton", 8)); all.DegreeMax != 7 || halton.DegreeMax != 3 {
		t.Errorf("updates per rank and scatter with 8 ranks: all %d, halton %d, want 7 : 3", all.DegreeMax, halton.DegreeMax)
	}
}

// The sequence as printed: N/2, N/4, 3N/4, N/8, 5N/8, 3N/8, 7N/8, …
func TestMALTSection34_AsPrinted(t *testing.T) {
	printed := [][2]int{{1, 2}, {1, 4}, {3, 4}, {1, 8}, {5, 8}, {3, 8}, {7, 8}, {1, 16}, {9, 16}}
	for size := 1; size <= 1023; size++ {
		for i, offset := range parse(t, "halton-paper", size).Receivers(0, 1) {
			if want := size * printed[i][0] / printed[i][1]; offset != want {
				t.Fatalf("halton-paper of %d: term %d is %d, want %d", size, i, offset, want)
			}
		}
	}
}

func TestHaltonIsConnectedForEveryN(t *testing.T) {
	for size := 1; size <= 2048; size++ {
		g := parse(t, "halton", size)
		if err := g.CheckConnected(); err != nil {
			t.Fatal(err)
		}
		if size > 1 && g.Receivers(0, 1)[0] != 1 {
			t.Fatalf("halton of %d does not begin with the ring: %v", size, g.Receivers(0, 1))
		}
	}
}

func TestPowersOfTwoAverageExactlyWithOnePeer(t *testing.T) {
	for size := 1; size <= 64; size *= 2 {
		g := parse(t, "one-peer", size)
		values := make([]float64, size)
		for rank := range values {
			values[rank] = float64(rank * rank)
		}
		mean := 0.0
		for _, v := range values {
			mean += v / float64(size)
		}
		for clock := range uint64(bits.Len(uint(size)) - 1) {
			values = gather(g, clock+1, values)
		}
		for rank, v := range values {
			if v != mean {
				t.Errorf("one-peer of %d: rank %d has %v after a period, want %v exactly", size, rank, v, mean)
			}
		}
	}
}

// gather is one scatter and one gather of the mean by every rank.
func gather(g *Graph, clock uint64, values []float64) []float64 {
	out := make([]float64, len(values))
	for rank := range values {
		senders := g.Senders(rank, clock)
		sum := values[rank]
		for _, from := range senders {
			sum += values[from]
		}
		out[rank] = sum / float64(len(senders)+1)
	}
	return out
}
