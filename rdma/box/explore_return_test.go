//go:build explore

package box

import (
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// returning is a case of a queue that is passed on to a reader which is away at
// first and comes back at any moment: the writer hears of both late, and excuses
// it meanwhile.
type returning struct{ depth, updates int }

// turnLock is End.Lock of one thread.
type turnLock struct {
	t *explore.Thread
	w *mem.Word
}

func (l turnLock) Lock() {
	for !l.w.CompareAndSwap(0, 1) {
		l.t.Await(func() bool { return l.w.Load() == 0 })
	}
}

func (l turnLock) Unlock() { l.w.Store(0) }

func (c returning) setup() func(x *explore.Exec) {
	l := layoutOf(rdma.Spec{Mode: rdma.Queue(c.depth)}, 1)
	return func(x *explore.Exec) {
		s := newSmall(x, l, env{})
		relay := &Relay{end: End{Layout: l}, w: s.w, r: s.rs[0]}
		words := x.Memory(6 * 8)
		word := func(i int) *mem.Word { return mem.WordAt(words, 8*i) }
		// known is what the writer has heard; landed and released are of the replica,
		// lost the answer to the reader that is back, plus 1.
		lock, known, back, landed, released, lost := word(0), word(1), word(2), word(3), word(4), word(5)
		known.Store(1) // it is away

		// What the lock guards is of both threads that take it.
		shared := explore.Ignore{State: s.w, Fields: []string{"busy", "look", "payload", "env"}}
		last := uint64(c.updates)
		x.Go("writer", func(t *explore.Thread) {
			s.w.env.Lock = turnLock{t, lock}
			for n := uint64(1); n <= last; n++ {
				for {
					t.At("begin", shared, n)
					b, err := s.w.Begin()
					if err != nil {
						t.Fail("%v", err)
					}
					if b != nil {
						break
					}
					if known.Load() != 0 {
						s.w.Excuse(0)
						continue
					}
					t.Await(func() bool { return known.Load() != 0 || s.w.Acked(0)+uint64(c.depth) >= n })
				}
				s.write(t, n, nil, true)
			}
		})
		x.Go("link", func(t *explore.Thread) {
			using := turnLock{t, lock}
			returned, passed, skip := false, uint64(0), uint64(0)
			for passed < last {
				t.At("pass", shared, relay.sent, relay.r, returned, passed, skip)
				if !returned && back.Load() != 0 {
					returned = true
					known.Store(0) // its word comes before
					using.Lock()
					skip, _ = relay.Return()
					using.Unlock()
					relay.Ack(skip)
					lost.Store(1 + skip)
				}
				using.Lock()
				h, b, mine, ok, err := relay.Next()
				if mine {
					check(t, h, b)
				}
				using.Unlock()
				switch {
				case err != nil:
					t.Fail("%v", err)
				case ok && !mine && returned && h.Seq > skip:
					t.Fail("update %d is lost, and its reader is back", h.Seq)
				case ok:
					passed = h.Seq
					landed.Store(passed)
				default:
					acked := relay.r.control.ack(0).Load()
					t.Await(func() bool {
						return !returned && back.Load() != 0 || released.Load() > acked || relay.top() > max(relay.sent, acked) && relay.top() <= acked+uint64(c.depth)
					})
					relay.Ack(released.Load())
				}
			}
		})
		x.Go("reader", func(t *explore.Thread) {
			back.Store(1)
			t.Await(func() bool { return lost.Load() != 0 })
			for seen := lost.Load() - 1; seen < last; {
				t.At("read", seen)
				t.Await(func() bool { return landed.Load() > seen })
				seen++
				released.Store(seen)
			}
		})
	}
}

// A reader that comes back gets the last update and everything that it is not
// told to be lost, whole; nobody waits for ever.
func TestExploreReturn(t *testing.T) {
	for _, c := range []struct {
		name string
		returning
	}{
		{"depth 1", returning{depth: 1, updates: 3}},
		{"depth 2", returning{depth: 2, updates: 3}},
	} {
		t.Run(c.name, func(t *testing.T) { must(t, explore.Options{}, c.setup()) })
	}
}
