package remote

import (
	"context"
	"runtime"
	"testing"
	"time"

	"malt/rdma"
)

// pair is a box of rank 0 that rank 1 reads.
func pair(t testing.TB, all []*Transport, s rdma.Spec) (rdma.Outbox, rdma.Inbox) {
	t.Helper()
	out, err := all[0].Publish(context.Background(), "pair", s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	ins, err := all[1].Subscribe(context.Background(), "pair", s, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	return out, ins[0]
}

// One update costs no allocation on its whole way, small or in several frames.
func TestNoAllocation(t *testing.T) {
	for _, s := range []rdma.Spec{{Bytes: 64}, {Bytes: largest}, {Bytes: largest, Mode: rdma.Queue(1)}} {
		all := openRanks(t, 2, func(c *config) { c.Unreachable = time.Hour }) // its looks at the connections allocate
		out, in := pair(t, all, s)
		clock := uint64(0)
		update := func() {
			clock++
			var b []byte
			for b == nil {
				b, _ = out.Begin()
				runtime.Gosched()
			}
			if err := out.Commit(len(b), rdma.Stamp{Clock: clock}, nil); err != nil {
				t.Fatal(err)
			}
			for {
				if u, ok, err := in.Next(); ok && u.Clock == clock {
					in.Release(u.Seq)
					return
				} else if err != nil {
					t.Fatal(err)
				}
				runtime.Gosched()
			}
		}
		for range 5 { // until every slot has memory
			update()
		}
		if n := testing.AllocsPerRun(30, update); n != 0 {
			t.Errorf("%+v: %v allocations per update", s, n)
		}
		closeAll(t, all)
	}
}
