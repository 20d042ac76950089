package graphs

import (
	"slices"
	"testing"
)

// TestLess: of the edges of a graph those between the ranks that are left stay, at each
// clock, and no other comes.
func TestLess(t *testing.T) {
	left := []int{0, 2, 3, 5}
	for _, spec := range []string{"all", "ring", "halton", "random:2", "star", "one-peer", "lists:1,2/2/3/4/5/0"} {
		g, err := Parse(spec, 6)
		if err != nil {
			t.Fatal(err)
		}
		less := g.Less(left)
		for rank := range 6 {
			for clock := uint64(1); clock <= 4; clock++ {
				for _, edges := range []struct{ before, after []int }{
					{g.Receivers(rank, clock), less.Receivers(rank, clock)},
					{g.Senders(rank, clock), less.Senders(rank, clock)},
					{g.AllReceivers(rank), less.AllReceivers(rank)},
				} {
					want := slices.DeleteFunc(edges.before, func(r int) bool {
						return !slices.Contains(left, r) || !slices.Contains(left, rank)
					})
					if !slices.Equal(edges.after, want) {
						t.Errorf("%s: rank %d at clock %d has edges with %v, expected %v", spec, rank, clock, edges.after, want)
					}
				}
			}
		}
		if g.Less([]int{0, 1, 2, 3, 4, 5}) != g {
			t.Errorf("%s: less nothing it is another graph", spec)
		}
	}
}
