//go:build explore

package rendezvous

import (
	"context"
	"fmt"
	"testing"

	"malt/internal/explore"
	"malt/rdma/internal/mem"
)

// returns is a case: ranks that sync so many times each, in lock-step but for slack, of which
// the one above them has died; processes that come back in its place, for so many tries; and a
// watcher, which notices deaths; the first ranks do not die. A rank that has made its syncs is in another call.
type returns struct {
	syncs []uint64
	slack uint64
	tries int

	immune    int
	impatient bool // the first has them not meet, if it is alone
}

func (c returns) setup(x *explore.Exec) {
	ranks := len(c.syncs)
	size := ranks + 1
	p := page(x.Memory(pageBytes(size)))
	clocks := x.Memory(64 * ranks)
	clock := func(rank int) *mem.Word { return mem.WordAt(clocks, 64*rank) }
	away := func(rank int) *mem.Word { return mem.WordAt(clocks, 64*rank+8) }
	x.Names(func(word func([]byte, string)) {
		word(p[offView:], "view")
		word(p[offAgain:], "again")
		word(p[offMembers+ranks*perMember+offBack:], "back")
		for rank := range ranks {
			word(clocks[64*rank:], fmt.Sprint("clock of rank ", rank))
			word(clocks[64*rank+8:], fmt.Sprint("other call of rank ", rank))
			word(p[offMembers+rank*perMember+offHere:], fmt.Sprint("here, of rank ", rank))
			word(p[offMembers+rank*perMember+offState:], fmt.Sprint("state of rank ", rank))
			word(p[offMembers+rank*perMember+offBell:], fmt.Sprint("bell of rank ", rank))
		}
	})
	p.format(size, 0)
	host := func(rank int) *Host {
		h := &Host{cfg: Config{Rank: rank, Size: size}, members: (&Config{Size: size}).members(), page: p}
		h.Survive(1)
		return h
	}
	for rank := range ranks {
		p.state(rank).Store(alive)
	}
	p.state(ranks).Store(dead)
	host(0).leaveOut(ranks)

	threads := make([]*explore.Thread, ranks)
	met := make([]uint64, ranks) // the clock before which each has met the others, at the last try
	skipped := make([]int, ranks)
	for rank := range ranks {
		h := host(rank)
		ringOthers := func() { h.RingEach(h.latest().Ranks, func(r int) uint64 { return host(r).BellID(0) }) }
		threads[rank] = x.Go(fmt.Sprint("rank ", rank), func(t *explore.Thread) {
			tried := uint64(0)
			for n := uint64(1); n <= c.syncs[rank]; n++ {
				t.At("sync", n, tried, h.known.Load())
				if try := h.MeetAt(n, c.slack, tried); try > 0 {
					tried = try
					h.Come(try)
					meet, there := false, false
					if c.impatient && rank == 0 {
						meet, there = h.Meets(try, func(int) bool { return true })
					}
					_ = h.Wait(context.Background(), 0, Policy{}, func() bool {
						if there {
							return true
						}
						t.At("meet", n, tried, h.known.Load(), t.Returned()>>1)
						meet, there = h.Meets(try, func(r int) bool { return away(r).Load() != 0 || h.State(r) != nil })
						return there
					})
					if meet {
						met[rank] = n
						return
					}
					skipped[rank]++
				}
				clock(rank).Store(n)
				ringOthers()
				_ = h.Wait(context.Background(), 0, Policy{}, func() bool {
					t.At("wait", n, tried, h.known.Load(), t.Returned()>>1)
					for r := range ranks {
						if clock(r).Load()+c.slack < n && away(r).Load() == 0 && h.State(r) == nil {
							return false
						}
					}
					return true
				})
			}
			away(rank).Store(1)
			ringOthers()
		})
	}
	for _, t := range threads[:c.immune] {
		t.Immune()
	}
	x.Always(func(report func(string, ...any)) {
		for a := range ranks {
			for b := range a {
				if met[a] != met[b] && met[a] > 0 && met[b] > 0 {
					report("ranks meet before syncs %d and %d", met[b], met[a])
				}
				if met[a] > 0 && skipped[b] > 0 && c.tries == 1 || met[b] > 0 && skipped[a] > 0 && c.tries == 1 {
					report("one of ranks %d and %d meets the others, and one does not", b, a)
				}
			}
		}
	})
	x.Go("processes", func(t *explore.Thread) {
		for n := range c.tries {
			t.At("back", n)
			p.letIn(ranks, 1000+n, 1)
			t.Yield()
		}
	})
	w := host(0)
	w.deaths = &deaths{h: w}
	x.Go("watcher", func(t *explore.Thread) {
		var known []int
		for {
			t.At("watch", known, w.known.Load())
			i := t.AwaitDeath(threads, &known)
			if i < 0 {
				return
			}
			w.deaths.publish(i)
		}
	}).Immune()
}

// Ranks meet again before the same sync, all that are left or none, whoever dies or makes fewer
// syncs; and none waits for ever for one that has met the others.
func TestExploreMeetingAgain(t *testing.T) {
	for _, c := range []struct {
		name               string
		large              bool
		kills, preemptions int
		returns
	}{
		{"in lock-step", false, 0, 1, returns{syncs: []uint64{3, 3}, tries: 1}},
		{"one dies", false, 1, 1, returns{syncs: []uint64{2, 2}, tries: 1, immune: 1}},
		{"one makes fewer syncs", false, 0, 1, returns{syncs: []uint64{1, 2}, tries: 1}},
		{"one ahead", false, 0, 1, returns{syncs: []uint64{3, 3}, slack: 1, tries: 1}},
		{"one does not wait", false, 0, 1, returns{syncs: []uint64{3, 3}, tries: 1, impatient: true}},
		{"two processes, one after the other", false, 0, 1, returns{syncs: []uint64{4, 4}, slack: 1, tries: 2}},
		{"in lock-step, more orders", true, 0, 2, returns{syncs: []uint64{3, 3}, tries: 1}},
		{"one of two dies", true, 1, 1, returns{syncs: []uint64{3, 3}, tries: 1}},
		{"three ranks, two die", true, 2, 1, returns{syncs: []uint64{2, 2, 2}, tries: 1}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.setup))
		})
	}
}
