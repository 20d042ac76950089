//go:build explore

package box

import (
	"fmt"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// newest is a case of newest mode: a writer that never waits, and readers that
// look whenever there is something new, until they have seen the last update.
type newest struct {
	spec    rdma.Spec
	readers int
	slots   int // 0: as many as the layout says
	updates int
	to      func(t *explore.Thread, n int) []int // readers of update n; nil: all of them, always
}

func (c newest) setup() func(x *explore.Exec) {
	l := layoutOf(c.spec, c.readers)
	if c.slots != 0 {
		l.Slots = c.slots
	}
	return func(x *explore.Exec) {
		s := newSmall(x, l, env{})
		meant := x.Memory(8 * c.readers) // seq of the last update for each reader; written when nobody reads it
		writer := x.Go("writer", func(t *explore.Thread) {
			for n := 1; n <= c.updates; n++ {
				t.At("write", s.writer())
				to, all := []int(nil), c.to == nil
				if all {
					to = make([]int, c.readers)
					for r := range to {
						to[r] = r
					}
				} else {
					to = c.to(t, n)
				}
				for _, r := range to {
					meant[8*r] = byte(n)
				}
				if s.write(t, uint64(n), to, all); all && s.w.own[0][0] > uint32(c.readers+2) && c.spec.Mode != rdma.ByClock {
					t.Fail("slot %d is used; with updates for all, %d are enough", s.w.own[0][0]-1, c.readers+2)
				}
			}
			s.w.Close()
		})
		for i, r := range s.rs {
			x.Go(fmt.Sprint("reader ", i), func(t *explore.Thread) {
				for last := uint64(0); ; {
					t.At("read", r, last)
					over := writer.Done() || writer.Dead()
					h, b, ok, err := r.Next()
					switch {
					case err != nil:
						t.Fail("%v", err)
					case ok && h.Seq <= last:
						t.Fail("update %d after %d: folded twice", h.Seq, last)
					case ok:
						check(t, h, b)
						last = h.Seq
						r.Release(h.Seq)
					case !over: // it looks also when there is nothing new
						t.Await(func() bool { return r.latest(newestOf)>>slotBits > last || writer.Done() || writer.Dead() })
					case writer.Done() && last != uint64(meant[8*i]):
						t.Fail("the last update seen is %d, not %d", last, meant[8*i])
					default:
						return
					}
				}
			})
		}
	}
}

// anyReaders chooses a set of readers, never the empty one.
func anyReaders(readers int) func(*explore.Thread, int) []int {
	return func(t *explore.Thread, _ int) (to []int) {
		set := 1 + t.Choose(1<<readers-1)
		for r := range readers {
			if set>>r&1 != 0 {
				to = append(to, r)
			}
		}
		return to
	}
}

// inTurn sends each update to one reader, the next to the next.
func inTurn(readers int) func(*explore.Thread, int) []int {
	return func(_ *explore.Thread, n int) []int { return []int{n % readers} }
}

// G2, G3 and G4 in newest mode: nothing torn or folded twice, the last update
// is seen, and the writer gets to its end whoever stops or dies where.
func TestExploreNewest(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		kills int
		newest
		buffered bool
	}{
		{"one reader", false, 2, newest{readers: 1, updates: 6}, false},
		{"two readers", false, 1, newest{readers: 2, updates: 3}, false},
		{"subsets", false, 1, newest{readers: 2, updates: 3, to: anyReaders(2)}, false},
		{"in turn", false, 0, newest{readers: 2, updates: 6, to: inTurn(2)}, false},
		{"lock-step", false, 1, newest{readers: 1, updates: 6, spec: rdma.Spec{Mode: rdma.ByClock}}, false},
		{"plain stores", false, 1, newest{readers: 1, updates: 4}, true},
		{"plain stores, two readers", false, 0, newest{readers: 2, updates: 3}, true},
		{"two readers, more updates", true, 2, newest{readers: 2, updates: 5}, false},
		{"subsets, more updates", true, 1, newest{readers: 2, updates: 4, to: anyReaders(2)}, false},
		{"lock-step, two readers", true, 1, newest{readers: 2, updates: 4, spec: rdma.Spec{Mode: rdma.ByClock}}, false},
		{"three readers", true, 0, newest{readers: 3, updates: 3}, false},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) { must(t, explore.Options{Kills: c.kills, Buffered: c.buffered}, c.setup()) })
	}
}

// In lock-step who sees a clock has the update of that clock, also where the sender is one update
// ahead, and where the reader has asked for it before it was there. Clocks may jump.
func TestExploreAt(t *testing.T) {
	const updates, jump = 7, 2
	spec := rdma.Spec{Mode: rdma.ByClock}
	l := layoutOf(spec, 1)
	must(t, explore.Options{Kills: 1}, func(x *explore.Exec) {
		s := newSmall(x, l, env{})
		folded := mem.WordAt(x.Memory(8), 0)
		var reader *explore.Thread
		writer := x.Go("writer", func(t *explore.Thread) {
			for n := uint64(1); n <= updates; n++ {
				t.At("write", s.writer())
				t.Await(func() bool { return folded.Load()+2 >= n || reader.Dead() })
				s.write(t, n*jump, []int{0}, true)
			}
		})
		reader = x.Go("reader", func(t *explore.Thread) {
			r := s.rs[0]
			at := func(n uint64) (seq uint64) {
				h, b, ok, _, err := r.At(n*jump + jump - 1)
				switch {
				case err != nil:
					t.Fail("%v", err)
				case ok:
					check(t, h, b)
				}
				return h.Seq
			}
			for n := uint64(1); n <= updates; n++ {
				t.At("fold", r, n)
				if got := at(n); got != n && got != n-1 {
					t.Fail("update %d in place of %d or the one before", got, n)
				}
				t.Await(func() bool { return r.control.clock().Load() >= n*jump || writer.Dead() })
				if got := at(n); got != n {
					if got == n-1 && writer.Dead() {
						return
					}
					t.Fail("update %d in place of %d", got, n)
				}
				folded.Store(n)
			}
		})
	})
}

// Fewer slots do not do: readers pin distinct old ones.
func TestExploreSlotsAreNeeded(t *testing.T) {
	for name, c := range map[string]newest{
		"k+1 for updates to all": {readers: 2, slots: 3, updates: 4},
		"2k for updates to some": {readers: 2, slots: 4, updates: 5, to: inTurn(2)},
		"k+2 in lock-step":       {readers: 1, slots: 3, updates: 4, spec: rdma.Spec{Mode: rdma.ByClock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustFail(t, explore.Options{}, c.setup())
		})
	}
}

// A reader attaches while the writer publishes and leaves, and then waits for
// rings alone: either it sees the update or the writer sees its bell.
func TestExploreAttach(t *testing.T) {
	for name, buffered := range map[string]bool{"plain stores": true, "consistent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := layoutOf(rdma.Spec{}, 1)
			must(t, explore.Options{Buffered: buffered}, func(x *explore.Exec) {
				bell := mem.WordAt(x.Memory(8), 0) // counts; read before each look, as that of package rendezvous
				s := newSmall(x, l, env{ring: func(to uint64) {
					if to == 2 {
						bell.Add(1)
					}
				}})
				s.w.control.readerBell(0).Store(0) // as it is before the reader attaches
				x.Go("writer", func(t *explore.Thread) {
					s.write(t, 1, nil, true)
					s.write(t, 2, nil, true)
					s.w.Close()
				})
				x.Go("reader", func(t *explore.Thread) {
					r := s.attach(0)
					var last uint64
					for {
						seen := bell.Load()
						_, gone := r.Clock()
						h, _, ok, err := r.Next()
						if err != nil {
							t.Fail("%v", err)
						}
						if ok {
							last = h.Seq
						}
						if gone != nil {
							break
						}
						t.Await(func() bool { return bell.Load() != seen })
					}
					if last != 2 {
						t.Fail("the last update seen is %d", last)
					}
				})
			})
		})
	}
}
