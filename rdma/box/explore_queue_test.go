//go:build explore

package box

import (
	"errors"
	"fmt"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// queue is a case of queue mode: a writer, which waits for its readers; readers,
// which take every update; and the kernel, which says who has died. Reader 0 may
// leave before the end.
type queue struct {
	depth   int
	readers int
	updates int
	to      func(t *explore.Thread, n int) []int // nil: all
	leaves  int                                  // reader 0 closes after so many updates; 0: at the end
}

// ranks are the words beside the box: one bell and one mark of death for each
// rank, 0 being the sender's. A bell is 1 when rung; its rank sets it back to 0
// before it looks at what it waits for. Both are fences. While its rank waits for
// nothing a bell says nothing: it is left at 1, so that a ring makes no difference.
type ranks struct {
	words    []byte
	buffered bool
}

func (r ranks) bell(rank int) *mem.Word { return mem.WordAt(r.words, 16*rank) }
func (r ranks) dead(rank int) *mem.Word { return mem.WordAt(r.words, 16*rank+8) }

// set is an exchange; where stores are fences themselves, one of those: what an
// exchange returns makes for more states.
func (r ranks) set(rank int, v uint64) {
	if r.buffered {
		r.bell(rank).Swap(v)
	} else {
		r.bell(rank).Store(v)
	}
}

func (r ranks) state(rank int) error {
	if r.dead(rank).Load() != 0 {
		return &rdma.PeerError{Rank: rank, Kind: rdma.Ended, Err: errors.New("killed")}
	}
	return nil
}

// rest leaves a bell as nobody looks at it, which takes no turn.
func (r ranks) rest(rank int) { r.words[16*rank] = 1 }

// wait runs step until it is true, now and after each ring.
func (r ranks) wait(t *explore.Thread, rank int, step func() bool) {
	for {
		r.set(rank, 0)
		if step() {
			r.rest(rank)
			return
		}
		t.Await(func() bool { return r.bell(rank).Load() != 0 })
	}
}

// kernel publishes each death and rings everybody, at any time after it.
func (r ranks) kernel(x *explore.Exec, threads []*explore.Thread) {
	x.Go("kernel", func(t *explore.Thread) {
		var known []int
		for {
			t.At("watch", known)
			rank := t.AwaitDeath(threads, &known)
			if rank < 0 {
				return
			}
			r.dead(rank).Store(1)
			for rank := range threads {
				r.set(rank, 1)
			}
		}
	}).Immune()
}

func (c queue) setup(buffered bool) func(x *explore.Exec) {
	l := layoutOf(rdma.Spec{Mode: rdma.Queue(c.depth)}, c.readers)
	return func(x *explore.Exec) {
		rs := ranks{x.Memory(16 * (1 + c.readers)), buffered}
		x.Names(func(word func([]byte, string)) {
			for rank := range 1 + c.readers {
				word(rs.words[16*rank:], fmt.Sprintf("bell of rank %d", rank))
				word(rs.words[16*rank+8:], fmt.Sprintf("death of rank %d", rank))
			}
		})
		for rank := range 1 + c.readers {
			rs.rest(rank)
		}
		s := newSmall(x, l, env{state: rs.state, ring: func(bell uint64) { rs.set(int(bell)-1, 1) }})

		threads := []*explore.Thread{x.Go("writer", func(t *explore.Thread) {
			for n := 1; n <= c.updates; n++ {
				rs.wait(t, 0, func() bool {
					t.At("begin", s.writer())
					b, err := s.w.Begin()
					if err != nil {
						t.Fail("%v", err)
					}
					return b != nil
				})
				t.At("write", s.writer())
				to, all := []int(nil), c.to == nil
				if !all {
					to = c.to(t, n)
				}
				s.write(t, uint64(n), to, all)
			}
			s.w.Close()
		})}
		for i, r := range s.rs {
			threads = append(threads, x.Go(fmt.Sprint("reader ", i), func(t *explore.Thread) { c.read(t, i, r, rs) }))
		}
		rs.kernel(x, threads)
	}
}

// read takes every update until the sender is gone.
func (c queue) read(t *explore.Thread, i int, r *Reader, rs ranks) {
	for last := uint64(0); i != 0 || c.leaves == 0 || last < uint64(c.leaves); last++ {
		var h Header
		var b []byte
		var ok bool
		var gone error
		rs.wait(t, 1+i, func() bool {
			t.At("next", r, last)
			var err error
			var clock uint64
			clock, gone = r.Clock()
			if gone != nil && clock != r.control.clock().Load() {
				t.Fail("%v, and then its clock was raised", gone)
			}
			if h, b, ok, err = r.Next(); err != nil {
				t.Fail("%v", err)
			}
			return ok || gone != nil
		})
		if !ok {
			if head := r.control.head().Load(); head != last {
				t.Fail("%v; the last update seen is %d, but %d were sent", gone, last, head)
			}
			if errors.Is(gone, rdma.ErrLeft) && last != uint64(c.updates) {
				t.Fail("the sender has left; the last update seen is %d, not %d", last, c.updates)
			}
			break
		}
		if h.Seq != last+1 {
			t.Fail("update %d after %d", h.Seq, last)
		}
		if b != nil {
			check(t, h, b)
		}
		r.Release(h.Seq)
	}
	t.At("leave", r)
	r.Close()
}

// Queue mode: every update, once, whole and in order, also the last before the
// sender left or died; nobody is waited for who left or died.
func TestExploreQueue(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		kills int
		queue
		buffered bool
	}{
		{"depth 1", false, 1, queue{depth: 1, readers: 1, updates: 3}, false},
		{"depth 2", false, 1, queue{depth: 2, readers: 1, updates: 4}, false},
		{"two readers", false, 1, queue{depth: 1, readers: 2, updates: 2}, false},
		{"a reader leaves", false, 0, queue{depth: 1, readers: 2, updates: 3, leaves: 1}, false},
		{"in turn", false, 0, queue{depth: 1, readers: 2, updates: 2, to: inTurn(2)}, false},
		{"plain stores", false, 0, queue{depth: 1, readers: 1, updates: 2}, true},
		{"two readers, depth 2", true, 1, queue{depth: 2, readers: 2, updates: 4}, false},
		{"a reader leaves or dies", true, 2, queue{depth: 2, readers: 2, updates: 3, leaves: 1}, false},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			must(t, explore.Options{Kills: c.kills, Buffered: c.buffered}, c.setup(c.buffered))
		})
	}
}
