//go:build explore

package box

import (
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// relayed is a case of a box that is passed on: a writer, and a link that takes
// out what there is for one reader. The replica that it goes into is a box again,
// with one thread that writes and one that reads: what is shown of those holds.
type relayed struct {
	spec    rdma.Spec
	updates int
}

func (c relayed) setup() func(x *explore.Exec) {
	l := layoutOf(c.spec, 1)
	return func(x *explore.Exec) {
		s := newSmall(x, l, env{})
		relay := &Relay{end: End{Layout: l}, w: s.w, r: s.rs[0]}
		passed := mem.WordAt(x.Memory(8), 0)
		writer := x.Go("writer", func(t *explore.Thread) {
			for n := uint64(1); n <= uint64(c.updates); n++ {
				t.At("write", s.writer())
				switch {
				case c.spec.Mode == rdma.ByClock: // one step ahead of the reader
					t.Await(func() bool { return passed.Load()+2 >= n })
				case c.spec.Mode.Depth() > 0:
					t.Await(func() bool { return s.w.Acked(0)+uint64(c.spec.Mode.Depth()) >= n })
				}
				s.write(t, n, []int{0}, true)
			}
			s.w.Close()
		})
		x.Go("link", func(t *explore.Thread) {
			for last := uint64(0); ; {
				t.At("pass", relay, relay.r, last)
				p := relay.Progress()
				h, b, mine, ok, err := relay.Next()
				switch {
				case err != nil:
					t.Fail("%v", err)
				case ok && (!mine || h.Seq <= last || h.Seq > last+1 && (c.spec.Mode == rdma.ByClock || c.spec.Mode.Depth() > 0)):
					t.Fail("update %d after %d", h.Seq, last)
				case ok:
					check(t, h, b)
					relay.Done()
					last = h.Seq
					relay.Ack(last) // as the reader would, later
					passed.Store(last)
				case p.Left && last != uint64(c.updates):
					t.Fail("the last update passed on is %d, not %d", last, c.updates)
				case p.Left:
					return
				default: // it looks also when nobody has said that there is something
					t.Await(func() bool { return relay.top() > last || writer.Done() })
				}
			}
		})
	}
}

// G2 and G3 of a box that is passed on: nothing is torn or comes twice, the last
// update arrives, and in lock-step and in a queue every one, in order.
func TestExploreRelay(t *testing.T) {
	for _, c := range []struct {
		name string
		relayed
	}{
		{"newest", relayed{spec: rdma.Spec{}, updates: 5}},
		{"lock-step", relayed{spec: rdma.Spec{Mode: rdma.ByClock}, updates: 5}},
		{"queue", relayed{spec: rdma.Spec{Mode: rdma.Queue(2)}, updates: 5}},
	} {
		t.Run(c.name, func(t *testing.T) { must(t, explore.Options{}, c.setup()) })
	}
}
