package exchange

import (
	"fmt"
	"slices"
	"testing"
)

// some hosts: equal, unequal, dealt out in turns.
var hosts = [][][]int{
	{{0}, {1}}, {{0}, {1}, {2}, {3}}, {{0, 1}, {2}}, {{0}, {1, 2, 3}}, {{0, 1}, {2, 3, 4}}, {{0, 1, 2}, {3, 4, 5}, {6, 7}}, {{0, 2}, {1, 3}, {4}},
}

// TestPlan: whatever the length, the segments are the array, each is handled by one
// rank of each host, and where there is enough every rank owns about as much of its
// host's share as the others, and all hosts have the same share.
func TestPlan(t *testing.T) {
	for _, hosts := range hosts {
		for bytes := range 131 {
			p := NewPlan(bytes, 8, hosts)
			at := 0
			for _, s := range p.Segments {
				if s.Lo != at || s.Hi <= s.Lo || s.Lo%8 != 0 {
					t.Fatalf("%v: %d bytes: segments %v", hosts, bytes, p.Segments)
				}
				at = s.Hi
				for h, r := range s.By {
					if !slices.Contains(hosts[h], r) {
						t.Fatalf("%v: %d bytes: rank %d is not on host %d", hosts, bytes, r, h)
					}
				}
				if s.Owner() != s.By[s.Host] {
					t.Fatalf("%v: host %d does not own its share", hosts, s.Host)
				}
			}
			if at != bytes {
				t.Fatalf("%v: segments of %d bytes end at %d", hosts, bytes, at)
			}
		}
		const unit = 8 * 7 * 60
		p := NewPlan(unit*len(hosts), 8, hosts)
		handled := map[int]int{}
		share := map[int]int{}
		for _, s := range p.Segments {
			share[s.Host] += s.Hi - s.Lo
			for _, r := range s.By {
				handled[r] += s.Hi - s.Lo
			}
		}
		for h, ranks := range hosts {
			if share[h] != unit {
				t.Errorf("%v: the share of host %d is %d bytes, want %d", hosts, h, share[h], unit)
			}
			for _, r := range ranks {
				if want := unit * len(hosts) / len(ranks); handled[r] < want-64 || handled[r] > want+64 {
					t.Errorf("%v: rank %d handles %d bytes, want about %d", hosts, r, handled[r], want)
				}
			}
		}
	}
}

// TestPays: never for what is small, nor where it saves no bytes, always for what is
// large; and never where a rank would own nothing.
func TestPays(t *testing.T) {
	for _, hosts := range hosts {
		for _, c := range []struct {
			bytes int
			want  bool
		}{{0, false}, {64, false}, {4 << 10, false}, {16 << 20, len(hosts) > 2 || len(hosts[0])+len(hosts[1]) > 2}} {
			if got := NewPlan(c.bytes, 64, hosts).Pays(); got != c.want {
				t.Errorf("%v: %d bytes: %t", hosts, c.bytes, got)
			}
		}
	}
	one := [][]int{{0, 1, 2}}
	if NewPlan(16<<20, 64, one).Pays() {
		t.Error("on one host")
	}
}

func ExampleNewPlan() {
	// One rank on the first host, two on the second.
	for _, s := range NewPlan(1000, 100, [][]int{{0}, {1, 2}}).Segments {
		fmt.Printf("%d…%d by %v, added up by %d\n", s.Lo, s.Hi, s.By, s.Owner())
	}
	// Output:
	// 0…200 by [0 1], added up by 0
	// 200…500 by [0 2], added up by 0
	// 500…700 by [0 1], added up by 1
	// 700…1000 by [0 2], added up by 2
}
