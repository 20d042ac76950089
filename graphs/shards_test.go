package graphs

import (
	"fmt"
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

// The sum of each part reaches every rank in a tree, in as few steps as its width allows; the other
// keepers pass it on where there are not enough ranks besides them. Where most ranks keep none, no rank passes on much more than
// it receives, one copy of each part.
func TestShardsInTrees(t *testing.T) {
	for size := 1; size <= 18; size++ {
		for keepers := 1; keepers <= size; keepers++ {
			for fanout := 1; fanout <= 5; fanout++ {
				g := parse(t, fmt.Sprintf("shards:%d/%d", keepers, fanout), size)
				if again := parse(t, g.String(), size); g.Keepers() != keepers || again.String() != g.String() {
					t.Fatalf("%s of %d: %d keepers", g, size, g.Keepers())
				}
				passed := make([]int, size) // parts
				for q := range keepers {
					for r, n := range checkTree(t, g, q, fanout) {
						if r != q {
							passed[r] += n
						}
						if r != q && n > 0 && r < keepers && size-keepers >= (size-2)/fanout {
							t.Errorf("%s of %d: rank %d passes part %d on", g, size, r, q)
						}
					}
				}
				if most := slices.Max(passed); most > keepers+fanout+1 && size >= 4*keepers {
					t.Errorf("%s of %d: ranks send on %v parts", g, size, passed)
				}
			}
		}
	}
}

// checkTree holds the tree of part q against what a tree has to be, and returns to how many others
// each rank sends.
func checkTree(t *testing.T, g *Graph, q, fanout int) []int {
	t.Helper()
	above := g.Above(q)
	to := make([]int, g.Size())
	deepest, full, room := 0, 0, 1 // ranks in the levels of a full tree of that depth
	for r := range above {
		depth, at := 0, r
		for ; at != q && depth <= g.Size(); depth++ {
			at = above[at]
		}
		if at != q {
			t.Fatalf("%s of %d: rank %d has part %d from itself: %v", g, g.Size(), r, q, above)
		}
		if deepest = max(deepest, depth); r != q {
			to[above[r]]++
			if !slices.Contains(g.Receivers(above[r], 1), r) || !slices.Contains(g.Receivers(r, 1), q) {
				t.Errorf("%s of %d: the graph lacks %d to %d, or %d to %d", g, g.Size(), above[r], r, r, q)
			}
		}
	}
	for range deepest {
		full += room
		room *= fanout
	}
	if above[q] != -1 || slices.Max(to) > fanout || deepest > 0 && g.Size() <= full {
		t.Errorf("%s of %d: part %d has the tree %v, %d deep", g, g.Size(), q, above, deepest)
	}
	return to
}

func TestShardsAreRefused(t *testing.T) {
	for spec, size := range map[string]int{
		"shards:": 8, "shards:0": 8, "shards:9": 8, "shards:+1": 8, "shards:-1": 8, "shards:a": 8, "shards:1x2": 8, "shards:99999999999999999999": 8,
		"shards:2/": 8, "shards:2/0": 8, "shards:/2": 8, "shards:2/+1": 8, "shards:2/40000": 8, "shards:9/2": 8, "shards:2/3/4": 8,
	} {
		_, err := Parse(spec, size)
		wantError(t, err, "shards", "Write")
	}
}

func TestGoldenShards(t *testing.T) {
	golden(t, "shards-8.txt", parse(t, "shards:2", 8).Text())
	golden(t, "shards-trees-8.txt", parse(t, "shards:2/3", 8).Text())
	golden(t, "shards-trees-12.txt", parse(t, "shards:12/2", 12).Text())
}

// TestTreesSpreadSumsFaster: 10 ranks keep a part each, for 40 others. Each host sends the newest of a part that
// it has, to one other at a time, and gets one at a time; each takes the same time. Keepers always have a newer sum.
func TestTreesSpreadSumsFaster(t *testing.T) {
	direct, trees := spread(parse(t, "shards:10", 50), 5000), spread(parse(t, "shards:10/2", 50), 5000)
	times := float64(trees) / float64(direct)
	t.Logf("%.2f times", times)
	if times < 3.5 {
		t.Errorf("in so many slots the rank with the fewest gets %d parts through trees, %d directly", trees, direct)
	}
}

// spread returns how many parts a rank gets in so many slots, of those that keep none: the one with the fewest.
func spread(g *Graph, slots int) (fewest int) {
	type edge struct{ part, to int }
	below := make([][]edge, g.Size()) // in turns
	has := make([][]int, g.Size())    // by part: since when it is the newest
	gets := make([][]int, g.Size())
	for r := range has {
		has[r], gets[r] = make([]int, g.Keepers()), make([]int, g.Keepers())
	}
	for q := range g.Keepers() {
		for r, above := range g.Above(q) {
			if above >= 0 {
				below[above] = append(below[above], edge{q, r})
			}
		}
	}
	for slot := 1; slot <= slots; slot++ {
		busy := make([]bool, g.Size())
		for q := range g.Keepers() {
			has[q][q] = slot
		}
		came := map[edge]int{}
		for i := range below {
			from := (i + slot) % len(below)
			for n, e := range below[from] {
				if has[from][e.part] > has[e.to][e.part] && !busy[e.to] {
					busy[e.to], came[e] = true, has[from][e.part]
					below[from] = append(append(slices.Clone(below[from][:n]), below[from][n+1:]...), e)
					break
				}
			}
		}
		for e, at := range came {
			has[e.to][e.part] = at
			gets[e.to][e.part]++
		}
	}
	fewest = slots * g.Keepers()
	for _, parts := range gets[g.Keepers():] {
		all := 0
		for _, n := range parts {
			all += n
		}
		fewest = min(fewest, all)
	}
	return fewest
}

// TestWorkers: ranks may do without another one if it keeps no part and passes none on.
func TestWorkers(t *testing.T) {
	for spec, want := range map[string]bool{"shards:1 of 4": true, "shards:3 of 4": true, "shards:1/3 of 4": true, "shards:1/2 of 4": false, "shards:4 of 4": false, "shards of 4": false, "shards:1 of 1": false, "all of 1": false, "butterfly of 4": false} {
		var name string
		var size int
		if _, err := fmt.Sscanf(spec, "%s of %d", &name, &size); err != nil {
			t.Fatal(err)
		}
		if got := parse(t, name, size).Workers(); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}
