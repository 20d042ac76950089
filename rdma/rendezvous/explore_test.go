//go:build explore

package rendezvous

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"malt/internal/explore"
	"malt/rdma/internal/mem"
)

// The doorbell in every interleaving of small cases; package explore says how.
// Sleeps end by being woken alone, so that a lost wake-up is a sleep for ever.
//

// bells is a case: publishers, each a rank, that store 1 … updates in a word of
// their own and ring rank 0 each time; and goroutines of rank 0, which wait for
// every step of the publishers they listen to.
type bells struct {
	publishers int
	updates    uint64
	waiters    [][]int // whom each listens to
	watched    bool    // rank 0 notices deaths
	silent     bool    // another rank notices them, and dies before it rings
	elsewhere  bool    // the waiters' contexts sleep for them
}

// elsewhere sleeps as the C library does for its callers: by the futex alone.
type elsewhere struct{ context.Context }

func (elsewhere) Sleep(word *uint32, seen uint32) {
	mem.FutexWait((*mem.Word)(unsafe.Pointer(word)), uint64(seen), 0)
}

func (c bells) setup(x *explore.Exec) {
	size := 1 + c.publishers
	p := page(x.Memory(pageBytes(size)))
	boxes := x.Memory(64 * c.publishers)
	box := func(i int) *mem.Word { return mem.WordAt(boxes, 64*i) }
	x.Names(func(word func([]byte, string)) {
		word(p[offMembers+offBell:], "bell")
		for rank := range size {
			word(p[offMembers+rank*perMember+offState:], fmt.Sprint("state of rank ", rank))
		}
		for i := range c.publishers {
			word(boxes[64*i:], fmt.Sprint("box ", i))
		}
	})
	host := func(rank int) *Host {
		return &Host{cfg: Config{Rank: rank, Size: size}, members: (&Config{Size: size}).members(), page: p}
	}
	for rank := range size {
		p.state(rank).Store(alive)
	}

	publishers := make([]*explore.Thread, c.publishers)
	for i := range publishers {
		h := host(1 + i)
		publishers[i] = x.Go(fmt.Sprint("publisher ", i), func(t *explore.Thread) {
			for n := uint64(1); n <= c.updates; n++ {
				t.At("publish", n)
				box(i).Store(n)
				h.Ring(host(0).BellID(0))
			}
		})
	}
	h0 := host(0) // of all goroutines of rank 0
	ctx := context.Background()
	if c.elsewhere {
		ctx = elsewhere{ctx}
	}
	for w, list := range c.waiters {
		x.Go(fmt.Sprint("waiter ", w), func(t *explore.Thread) {
			for n := uint64(1); n <= c.updates; n++ {
				t.At("wait", n)
				err := h0.Wait(ctx, 0, Policy{}, func() bool {
					t.At("look", n, t.Returned()>>1) // the count of rings that Wait holds
					for _, i := range list {
						if h0.State(1+i) == nil && box(i).Load() < n {
							return false
						}
					}
					return true
				})
				if err != nil {
					t.Fail("%v", err)
				}
			}
		}).Immune()
	}
	watch := func(name string, notice func(rank int)) {
		x.Go(name, func(t *explore.Thread) {
			var known []int
			for {
				t.At("watch", known)
				i := t.AwaitDeath(publishers, &known)
				if i < 0 {
					return
				}
				notice(1 + i)
			}
		}).Immune()
	}
	if c.watched {
		h0.deaths = &deaths{h: h0}
		watch("watcher", h0.deaths.publish)
	}
	if c.silent {
		watch("silent watcher", func(rank int) { p.advance(rank, dead) })
	}
}

// Nobody sleeps through an update, nor through the death of a publisher, not
// even of one that dies between its update and the ring, nor when who notices
// that dies in turn.
func TestExploreBell(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		kills int
		bells
	}{
		{"two publishers", false, 0, bells{publishers: 2, updates: 2, waiters: [][]int{{0, 1}}}},
		{"two waiters", false, 0, bells{publishers: 2, updates: 1, waiters: [][]int{{0}, {1}}}},
		{"two waiters for one", false, 0, bells{publishers: 1, updates: 2, waiters: [][]int{{0}, {0}}}},
		{"deaths", false, 1, bells{publishers: 2, updates: 1, waiters: [][]int{{0, 1}}, watched: true}},
		{"death of who noticed", false, 1, bells{publishers: 1, updates: 2, waiters: [][]int{{0}}, watched: true, silent: true}},
		{"asleep elsewhere", false, 0, bells{publishers: 2, updates: 2, waiters: [][]int{{0, 1}}, elsewhere: true}},
		{"three publishers", true, 0, bells{publishers: 3, updates: 2, waiters: [][]int{{0, 1, 2}}}},
		{"two waiters for both", true, 0, bells{publishers: 2, updates: 1, waiters: [][]int{{0, 1}, {1, 0}}}},
		{"two waiters, deaths", true, 1, bells{publishers: 2, updates: 1, waiters: [][]int{{0}, {1}}, watched: true}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) { explore.Must(t, explore.Check(explore.Options{Kills: c.kills}, c.setup)) })
	}
}
