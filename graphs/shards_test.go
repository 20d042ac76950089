package graphs

import (
	"slices"
	"testing"
)

// All ranks send to those that keep a part, and these to all.
func TestShardsJoinAllWithKeepers(t *testing.T) {
	for size := 1; size <= 12; size++ {
		for keepers, spec := range append([]string{"shards"}, "shards:1", "shards:2", "shards:3")[:min(size, 3)+1] {
			g := parse(t, spec, size)
			if keepers == 0 {
				keepers = size
			}
			if g.Keepers() != keepers {
				t.Errorf("%s of %d: %d keepers", spec, size, g.Keepers())
			}
			for from := range size {
				to := sorted(g.Receivers(from, 1))
				for r := range size {
					if want := r != from && (r < keepers || from < keepers); slices.Contains(to, r) != want {
						t.Errorf("%s of %d: rank %d sends to %v", spec, size, from, to)
					}
				}
			}
		}
	}
	if parse(t, "all", 4).Keepers() != 0 || parse(t, "all", 4).OfChanges() || !parse(t, "shards", 4).OfChanges() || !parse(t, "butterfly", 4).OfChanges() {
		t.Error("not these are the graphs of changes")
	}
}

func TestShardsAreRefused(t *testing.T) {
	for spec, size := range map[string]int{
		"shards:": 8, "shards:0": 8, "shards:9": 8, "shards:+1": 8, "shards:-1": 8, "shards:a": 8, "shards:1x2": 8, "shards:99999999999999999999": 8,
	} {
		_, err := Parse(spec, size)
		wantError(t, err, "shards", "Write")
	}
}

func TestGoldenShards(t *testing.T) {
	golden(t, "shards-8.txt", parse(t, "shards:2", 8).Text())
}
