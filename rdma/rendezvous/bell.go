package rendezvous

import (
	"context"
	"sync/atomic"
	"time"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// A doorbell is one word. The lowest bit says that somebody sleeps on it, or is
// about to; the others count how often it was rung then.
//
//	ring:  while (d = b) & 1: if CAS(b, d, d + 1): wake all; return
//	alarm: ADD(b, 2), wake all
//	wait:  loop { d = FETCH_OR(b, 1) | 1; if condition: return; futex_wait(b, d) }
//
// Who rings has stored before what the waiter looks for, with an exchange or a
// fence behind it. So either the waiter's look after FETCH_OR sees it, or the ring
// comes after FETCH_OR: then it finds the bit, clears it, which makes
// futex_wait(d) return, and wakes who already sleeps. Where nobody sleeps a ring
// is one load of a word that does not change: who does not sleep looks at what it
// waits for. All are woken, since several goroutines may wait for different things
// at one bell. A ringer that dies between the addition and the wake leaves
// sleepers, perhaps with the bit cleared, so that further rings do not wake them
// either; its death is an alarm (deaths.go), which wakes whatever the bit says.
// One that is stopped there is not dead: until it goes on, the sleepers hear of
// this ring and of later ones only when their sleep is over (Policy.Sleep).
// A waiter that dies or is stopped with the bit set costs the next ringer one wake
// that finds nobody.

// ring rings b.
func ring(b *mem.Word) {
	for old := b.Load(); old&1 != 0; old = b.Load() {
		if b.CompareAndSwap(old, old+1) {
			mem.FutexWake(b)
			return
		}
	}
}

// alarm rings b and wakes all who sleep on it in any case.
func alarm(b *mem.Word) {
	b.Add(2)
	mem.FutexWake(b)
}

// Policy says how to wait: first by looking Spin times, then by giving the core away and
// looking, then asleep.
type Policy struct {
	Spin  int
	Yield time.Duration // of this process: what another rank does meanwhile does not count
	// Sleep is how long one sleep lasts at most; 0 means until rung. Nothing
	// depends on it but how soon news comes that a ringer did not bring because
	// it was stopped while it rang.
	Sleep time.Duration
}

// Wait runs step until it is true, once at once, again while it does not sleep,
// and each time bell i of this rank has been rung while it did. It returns ctx.Err()
// when ctx is done and rdma.ErrClosed when the Host is closed meanwhile.
//
// Who has slept through the whole of a sleep, and nobody has rung since, sleeps at
// once: who waits for a rank that is stopped, in many short calls, keeps no core busy.
// So does who has looked in vain mostLooks times, since others may ring for ever.
//
// Where mostLong waits in a row have slept for longer than they yield, the next one does not
// yield: ranks that train come as late again, and to yield does not last until then. It only
// takes processor time. A shorter wait has the next one yield.
func (h *Host) Wait(ctx context.Context, i int, p Policy, step func() bool) error {
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	bell := h.page.bell(h.cfg.Rank, i)
	silent := &h.silent[i]
	sleeper, _ := ctx.(rdma.Sleeper)
	var stop func() bool
	watches := false // for processes that are ending
	yields, long := p.Yield, &h.long[i]
	if long.Load() >= mostLong {
		p.Yield = 0
	}
	sleeps := false
	for looks := 0; ; looks++ {
		if looks >= mostLooks || silent.Load() == bell.Load() {
			if step() {
				return nil
			}
		} else if h.poll(ctx, p, step) {
			if !sleeps && long.Load() > 0 {
				long.Store(0)
			}
			return nil
		}
		// The end of ctx rings, but only who sleeps here needs that.
		if stop == nil && sleeper == nil {
			stop = context.AfterFunc(ctx, func() { h.Ring(h.BellID(i)) })
			defer stop()
		}
		if !watches && h.exits != nil && h.least.Load() > 0 {
			watches = true
			h.exits.sleep()
			defer h.exits.awake()
		}
		if !sleeps {
			sleeps = true
			defer slept(long, time.Now(), yields)
		}
		asleep := bell.Or(1) | 1
		switch { // after the bit: who closes, and the end of ctx, rings afterwards
		case h.guard.Closed():
			return rdma.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if step() {
			return nil
		}
		if sleeper != nil {
			sleeper.Sleep(mem.Low(bell), uint32(asleep))
		} else {
			mem.FutexWait(bell, asleep, p.Sleep)
		}
		if bell.Load() == asleep {
			silent.Store(asleep)
		}
	}
}

// mostLooks is how often a wait looks without sleeping: for the ranks to come, and for what
// they do then. What rings besides may be of no use.
const mostLooks = 2

// mostLong is how many long waits have the next one not yield. One or two may be those of a rank
// that has lost its core for a moment.
const mostLong = 3

// slept counts a wait that began to sleep then.
func slept(long *atomic.Uint32, then time.Time, yields time.Duration) {
	if time.Since(then) > yields {
		long.Add(1)
	} else {
		long.Store(0)
	}
}

// late is a yield that went to more than other ranks that look, or fold: they give
// the core back sooner, while another program keeps it for its slice of some
// milliseconds.
const late = time.Millisecond

// brief is about what a yield costs this process where the core goes to another rank, which
// does what is waited for, and comes back.
const brief = time.Microsecond

// poll runs step without sleeping, and tells whether it became true. A core that
// comes back late has gone to somebody who computes. That will happen again: who
// yields waits for its turn each time, milliseconds, where a sleeper is let in soon
// after it was rung. So the look is over then.
func (h *Host) poll(ctx context.Context, p Policy, step func() bool) bool {
	for range 1 + p.Spin {
		if step() {
			return true
		}
	}
	before := time.Now()
	for spent := time.Duration(0); spent < p.Yield; {
		mem.Yield()
		if step() {
			return true
		}
		now := time.Now()
		if now.Sub(before) > late || ctx.Err() != nil || h.guard.Closed() {
			break
		}
		spent += min(now.Sub(before), brief)
		before = now
	}
	return false
}

// BellID is the number of this rank's bell i for Ring: never 0, so that 0 can
// mean none.
func (h *Host) BellID(i int) uint64 { return uint64(h.cfg.Rank*Bells+i) + 1 }

// Ring rings a bell of any rank. Numbers that are no bell's are ignored: they
// come from shared memory.
func (h *Host) Ring(id uint64) {
	h.RingEach([]int{h.cfg.Rank}, func(int) uint64 { return id })
}

// RingEach is Ring of the bell of each of these ranks.
func (h *Host) RingEach(ranks []int, bell func(rank int) (id uint64)) {
	if !h.guard.Enter() {
		return
	}
	defer h.guard.Exit()
	for _, rank := range ranks {
		if id := bell(rank); id-1 < uint64(h.cfg.Size*Bells) {
			ring(h.page.bell(int(id-1)/Bells, int(id-1)%Bells))
		}
	}
}

// RingAll rings every bell of every rank.
func (h *Host) RingAll() {
	if h.guard.Enter() {
		defer h.guard.Exit()
		for _, rank := range h.members {
			h.ringRank(rank)
		}
	}
}

// RingOwn rings every bell of this rank.
func (h *Host) RingOwn() {
	if h.guard.Enter() {
		defer h.guard.Exit()
		h.ringRank(h.cfg.Rank)
	}
}

// ringRank rings every bell of one rank, as an alarm: it is for what happens
// seldom, deaths among it. The caller has entered the guard.
func (h *Host) ringRank(rank int) {
	for i := range Bells {
		alarm(h.page.bell(rank, i))
	}
}
