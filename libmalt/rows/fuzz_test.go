package rows

import (
	"math"
	"slices"
	"strings"
	"testing"

	"malt/graphs"
	"malt/rdma"
)

// FuzzLists: whatever a member of a group sends as its lists is refused, or gives a plan whose places
// exist.
func FuzzLists(f *testing.F) {
	g, err := graphs.Parse("butterfly:2", 2)
	if err != nil {
		f.Fatal(err)
	}
	ids, wants := []uint64{0, 5, math.MaxUint64}, []uint64{5, 7}
	for _, wrong := range [][]byte{nil, {0}, {0, 0, 0}, {255}, {3, 1}, {1, 0, 0, 0}, {2, 255, 255, 255, 255, 255, 255, 255, 255, 127, 1, 1, 1, 0}} {
		f.Add(wrong)
	}
	f.Add(NewPlan(g.Stages(1), 1, ids, wants).List(0))
	f.Fuzz(func(t *testing.T, list []byte) {
		p := NewPlan(g.Stages(0), 0, ids, wants)
		if err := p.Take([][]byte{nil, list}); err != nil {
			return
		}
		s, n := p.stages[0], len(p.counts)
		if len(s.adds[1]) > n || len(s.sends[1]) > len(p.found) || slices.Contains(p.counts, 0) {
			t.Fatalf("%d and %d places for %d rows, %d wanted, of %d", len(s.adds[1]), len(s.sends[1]), n, len(p.found), p.counts)
		}
		for i, at := range s.adds[1] {
			if int(at) >= n || i > 0 && at <= s.adds[1][i-1] {
				t.Fatalf("row %d goes to %d of %d, the one before to %d", i, at, n, s.adds[1][max(0, i-1)])
			}
		}
		for i, at := range s.sends[1] {
			if int(at) >= len(p.found) || i > 0 && at <= s.sends[1][i-1] {
				t.Fatalf("wanted row %d is at %d of %d", i, at, len(p.found))
			}
		}
	})
}

// TestListsAreRefused: of ids that cannot be, each for its reason. This rank has the first half of all.
func TestListsAreRefused(t *testing.T) {
	g, err := graphs.Parse("butterfly:2", 2)
	if err != nil {
		t.Fatal(err)
	}
	half := []byte{255, 255, 255, 255, 255, 255, 255, 255, 127} // its last id, from the first
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for _, c := range []struct {
		list []byte
		want string // nothing: it is taken
	}{
		{[]byte{0, 0}, ""},
		{join([]byte{1}, half, []byte{1, 0}), ""},
		{[]byte{2, 0, 0, 1, 1, 1, 7}, ""},
		{nil, "a list of ids ends within a number"},
		{[]byte{0}, "a list of ids ends within a number"},
		{[]byte{255}, "a list of ids ends within a number"},
		{[]byte{1, 0}, "a list of ids ends within a number"},
		{[]byte{128, 128, 128, 128, 128, 128, 128, 128, 16, 0}, "a list of 1152921504606846976 ids has 1 bytes"},
		{[]byte{0, 0, 0}, "1 bytes follow a list of ids"},
		{[]byte{1, 0, 0, 0}, "no row has an id of a list"},
		{[]byte{1, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1, 1, 0}, "a list of ids leaves its range"},
		{join([]byte{2}, half, []byte{0, 1, 1, 0}), "a list of ids leaves its range"},
	} {
		switch err := NewPlan(g.Stages(0), 0, nil, nil).Take([][]byte{nil, c.list}); {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.list, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.list, err, c.want)
		}
	}
}

// TestMixIsABijection: it is undone by what undoes the finaliser of MurmurHash3.
func TestMixIsABijection(t *testing.T) {
	inverse := func(odd uint64) uint64 {
		x := odd // to 3 bits, and twice as many each time
		for range 5 {
			x *= 2 - odd*x
		}
		return x
	}
	for i := range uint64(1000) {
		id := i * 0x9e3779b97f4a7c15
		x := mix(id)
		x = (x ^ x>>33) * inverse(0xc4ceb9fe1a85ec53)
		x = (x ^ x>>33) * inverse(0xff51afd7ed558ccd)
		if x ^= x >> 33; x != id {
			t.Fatalf("%#x becomes %#x, which is undone to %#x", id, mix(id), x)
		}
	}
}

// FuzzMessages: whatever a peer sends, a round takes as many bytes as it expects, in order.
func FuzzMessages(f *testing.F) {
	f.Add(uint64(3), uint16(1), uint64(8), uint64(0), uint16(4), true)
	f.Add(uint64(3), uint16(1), uint64(0), uint64(0), uint16(0), true)
	f.Add(uint64(2), uint16(9), uint64(math.MaxUint64), uint64(4), uint16(4), false)
	f.Fuzz(func(t *testing.T, clock uint64, kind uint16, age, tag uint64, n uint16, known bool) {
		c := Course{chunk: 4}
		p := peer{rank: 1, from: unknown}
		if known {
			p.from = 8
		}
		c.enter(3, 1, []peer{p})
		for range 4 {
			what, err := c.judge(0, rdma.Stamp{Clock: clock, Kind: kind, Age: age, Tag: tag}, int(n))
			if what != take || err != nil {
				return
			}
			was := c.peers[0].got
			if c.took(0); clock != 3 || kind != 1 || n == 0 || int(tag) != was || c.peers[0].got != was+int(n) || c.peers[0].got > c.peers[0].from {
				t.Fatalf("took %d bytes at %d of call %d, round %d: %+v", n, tag, clock, kind, c.peers[0])
			}
			tag += uint64(n)
		}
	})
}

// TestARankThatTakesNothingIsLate: though all has come from it.
func TestARankThatTakesNothingIsLate(t *testing.T) {
	c := Course{chunk: 4}
	if c.enter(3, 1, []peer{{rank: 1, sent: 4, to: 8}}); !slices.Equal(c.late(nil), []int{1}) || c.over() {
		t.Errorf("waits for %d, over: %v", c.late(nil), c.over())
	}
}

// TestSpansNest: the parts of a part follow each other, and end where it does.
func TestSpansNest(t *testing.T) {
	for _, degrees := range [][]int{{1}, {2, 2}, {3, 2, 5}, {7, 11}, {1024}} {
		var walk func(s span, left []int)
		walk = func(s span, left []int) {
			if len(left) == 0 {
				return
			}
			next := s.first()
			for j := range left[0] {
				p := s.part(j, left[0])
				if p.first() != next || p.last() < p.first() {
					t.Fatalf("part %d of %d of %+v is from %d to %d, after %d", j, left[0], s, p.first(), p.last(), next-1)
				}
				next = p.last() + 1
				walk(p, left[1:])
			}
			if next != s.last()+1 {
				t.Fatalf("%+v ends at %d, its parts at %d", s, s.last(), next-1)
			}
		}
		walk(everything, degrees)
	}
}
