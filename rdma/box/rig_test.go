package box

import (
	"fmt"
	"slices"
	"testing"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// rig is one box in this process: the sender is rank 0, the readers ranks 1 … k.
// Bells have the number of the rank, plus 1.
type rig struct {
	testing.TB
	layout   Layout
	control  control
	slots    []byte
	reserved []int    // slots in the order of first use
	ranges   [][3]int // slot, from and to of each Reserve
	rung     []uint64 // bells in the order in which they were rung
	quiet    bool     // do not record rings
	state    map[int]error
	refuse   error // what Reserve says
	out      *Outbox
	in       []*Inbox
}

func newRig(t testing.TB, s rdma.Spec, readers int) *rig {
	t.Helper()
	l, err := NewLayout(s, readers)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, layout: l, control: mem.Heap(l.ControlBytes, 64), slots: mem.Heap(l.SlotBytes(), 64), state: map[int]error{}}
	var ranks []int
	for i := range readers {
		ranks = append(ranks, i+1)
	}
	r.out, err = NewOutbox(r.end(0), ranks, func(slot, from, to int) error {
		if r.refuse == nil && from == 0 {
			r.reserved = append(r.reserved, slot)
		}
		if r.refuse == nil {
			r.ranges = append(r.ranges, [3]int{slot, from, to})
		}
		return r.refuse
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range readers {
		in, err := NewInbox(r.end(i+1), i)
		if err != nil {
			t.Fatal(err)
		}
		r.in = append(r.in, in)
	}
	return r
}

// end is that of a rank.
func (r *rig) end(rank int) End {
	return End{
		Place:  Place{Control: r.control, Slot: r.layout.Flat(r.slots)},
		Layout: r.layout, Name: "box", Sender: 0, Member: 77, Generation: 5, Bell: uint64(rank) + 1,
		Ring: func(b uint64) {
			if !r.quiet {
				r.rung = append(r.rung, b)
			}
		},
		State: func(rank int) error { return r.state[rank] },
	}
}

// send commits one byte, the clock, to ranks.
func (r *rig) send(clock uint64, to ...int) {
	r.Helper()
	b, err := r.out.Begin()
	if err != nil || b == nil {
		r.Fatalf("clock %d: Begin: %v, %v", clock, b, err)
	}
	b[0] = byte(clock)
	if err := r.out.Commit(1, rdma.Stamp{Clock: clock}, to); err != nil {
		r.Fatal(err)
	}
}

// want is Next of reader number i that must give that clock.
func (r *rig) want(i int, clock uint64) rdma.Update {
	r.Helper()
	u, ok, err := r.in[i].Next()
	if err != nil || !ok || u.Clock != clock || len(u.Data) != 1 || u.Data[0] != byte(clock) {
		r.Fatalf("reader %d: %+v, ok %v, error %v; expected clock %d", i, u, ok, err, clock)
	}
	return u
}

// takeRings returns the bells that were rung since the last call, sorted.
func (r *rig) takeRings() string {
	s := slices.Sorted(slices.Values(r.rung))
	r.rung = nil
	return fmt.Sprint(s)
}
