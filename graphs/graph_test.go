package graphs

import (
	"slices"
	"testing"
)

// The list of reference: rank 0 of halton.
func TestHaltonReference(t *testing.T) {
	for size, want := range map[int][]int{
		1: {}, 2: {1}, 3: {1}, 4: {1, 3}, 5: {1, 3}, 6: {1, 4}, 7: {1, 5}, 8: {1, 5, 3}, 9: {1, 5, 3},
		10: {1, 6, 3}, 11: {1, 6, 4}, 12: {1, 7, 4}, 13: {1, 8, 4}, 14: {1, 8, 5}, 15: {1, 9, 5},
		16: {1, 9, 5, 13}, 20: {1, 11, 6, 16}, 24: {1, 13, 7, 19}, 32: {1, 17, 9, 25, 5},
		48: {1, 25, 13, 37, 7}, 64: {1, 33, 17, 49, 9, 41},
	} {
		g := parse(t, "halton", size)
		if got := g.Receivers(0, 1); !slices.Equal(got, want) {
			t.Errorf("halton of %d: rank 0 sends to %v, want %v", size, got, want)
		}
	}
}

func parse(t testing.TB, spec string, size int) *Graph {
	t.Helper()
	g, err := Parse(spec, size)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
