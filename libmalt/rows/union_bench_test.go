package rows

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkUnion compares the union of 16 sorted sets, merged pair by pair, with one that looks each
// id up by its hash and then sorts. `python -m examples.evidence A5` prints the ratio.
func BenchmarkUnion(b *testing.B) {
	draw := rand.New(rand.NewPCG(1, 1))
	sets := make([]set, 16)
	for i := range sets {
		ids := make([]uint64, 100_000)
		for j := range ids {
			ids[j] = draw.Uint64N(1_000_000)
		}
		sets[i], _ = setOf(ids, true)
	}
	hashed := func() set {
		counts := map[uint64]uint64{}
		for _, s := range sets {
			for i, id := range s.ids {
				counts[id] += s.counts[i]
			}
		}
		u := set{ids: slices.Sorted(maps.Keys(counts))}
		for _, id := range u.ids {
			u.counts = append(u.counts, counts[id])
		}
		return u
	}
	if tree, table := union(sets), hashed(); !slices.Equal(tree.ids, table.ids) || !slices.Equal(tree.counts, table.counts) {
		b.Fatal("the two unions differ")
	}
	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			union(sets)
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			hashed()
		}
	})
}
