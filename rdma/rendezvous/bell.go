package rendezvous

import (
	"context"
	"time"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// A doorbell is one word. All but the lowest bit count how often it was rung;
// the lowest says that somebody sleeps on it, or is about to.
//
//	ring:  old = FETCH_ADD(b, 2); if old & 1: AND(b, ~1), wake all
//	alarm: ADD(b, 2), wake all
//	wait:  loop { d = FETCH_OR(b, 1) | 1; if condition: return; futex_wait(b, d) }
//
// Who rings has stored before what the waiter looks for. So either the waiter's
// look after FETCH_OR sees it, or the ring comes after FETCH_OR: then it finds
// the bit, clears it, which makes futex_wait(d) return, and wakes who already
// sleeps. All are woken, since several goroutines may wait for different things
// at one bell. A ringer that dies between the addition and the wake leaves
// sleepers, perhaps with the bit cleared, so that further rings do not wake them
// either; its death is an alarm (deaths.go), which wakes whatever the bit says.
// One that is stopped there is not dead: until it goes on, the sleepers hear of
// this ring and of later ones only when their sleep is over (Policy.Sleep).
// A waiter that dies or is stopped with the bit set costs each ringer one wake
// that finds nobody.

// ring rings b.
func ring(b *mem.Word) {
	if old := b.Add(2) - 2; old&1 != 0 {
		b.And(^uint64(1))
		mem.FutexWake(b)
	}
}

// alarm rings b and wakes all who sleep on it in any case.
func alarm(b *mem.Word) {
	b.Add(2)
	mem.FutexWake(b)
}

// rung tells whether b was rung between two values of it.
func rung(before, now uint64) bool { return (before^now)&^1 != 0 }

// Policy says how to wait: first by looking at the bell Spin times, then by
// giving the core away Yield times, then asleep.
type Policy struct {
	Spin  int
	Yield int
	// Sleep is how long one sleep lasts at most; 0 means until rung. Nothing
	// depends on it but how soon news comes that a ringer did not bring because
	// it was stopped while it rang.
	Sleep time.Duration
}

// Wait runs step until it is true, once at once and again each time bell i of
// this rank has been rung. It returns ctx.Err() when ctx is done and
// rdma.ErrClosed when the Host is closed meanwhile.
//
// A bell that was silent for a whole sleep is not looked at before the next one:
// who waits for a rank that is stopped, in many short calls, keeps no core busy.
func (h *Host) Wait(ctx context.Context, i int, p Policy, step func() bool) error {
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	bell := h.page.bell(h.cfg.Rank, i)
	seen := bell.Load()   // before step: a ring during it is not lost
	if h.guard.Closed() { // after the load: Close rings after it has closed
		return rdma.ErrClosed
	}
	if step() {
		return nil
	}
	var stop func() bool
	sleeper, _ := ctx.(rdma.Sleeper)
	silent := &h.silent[i]
	for {
		now, ok := seen, false
		if silent.Load() != seen|1 {
			now, ok = p.look(ctx, bell, seen)
		}
		if !ok {
			// The end of ctx rings, but only who sleeps here needs that.
			if stop == nil && sleeper == nil {
				stop = context.AfterFunc(ctx, func() { h.Ring(h.BellID(i)) })
				defer stop()
			}
			if now = p.sleep(bell, seen, sleeper); !rung(seen, now) || ctx.Err() != nil {
				silent.Store(now | 1)
			}
		}
		switch {
		case h.guard.Closed():
			return rdma.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if rung(seen, now) {
			seen = now
			if step() {
				return nil
			}
		}
	}
}

// look returns the bell's value once it was rung after seen, or when ctx is done;
// not ok if neither happened while looking. On a machine that is busy with other
// things the core comes back after milliseconds, so the yields together may last
// for seconds: ctx is asked after each.
func (p Policy) look(ctx context.Context, bell *mem.Word, seen uint64) (now uint64, ok bool) {
	for range p.Spin {
		if now := bell.Load(); rung(seen, now) {
			return now, true
		}
	}
	for range p.Yield {
		if now := bell.Load(); rung(seen, now) {
			return now, true
		}
		mem.Yield()
		if ctx.Err() != nil {
			return seen, true
		}
	}
	return 0, false
}

// sleep returns the bell's value when it was rung after seen, when the time is
// up, or, for no reason, earlier. A sleeper that is not nil does the sleeping.
func (p Policy) sleep(bell *mem.Word, seen uint64, sleeper rdma.Sleeper) (now uint64) {
	now = bell.Or(1) | 1
	if !rung(seen, now) {
		if sleeper != nil {
			sleeper.Sleep(mem.Low(bell), uint32(now))
		} else {
			mem.FutexWait(bell, now, p.Sleep)
		}
		now = bell.Load()
	}
	return now
}

// BellID is the number of this rank's bell i for Ring: never 0, so that 0 can
// mean none.
func (h *Host) BellID(i int) uint64 { return uint64(h.cfg.Rank*Bells+i) + 1 }

// Ring rings a bell of any rank. Numbers that are no bell's are ignored: they
// come from shared memory.
func (h *Host) Ring(id uint64) {
	if id-1 < uint64(h.cfg.Size*Bells) && h.guard.Enter() {
		defer h.guard.Exit()
		ring(h.page.bell(int(id-1)/Bells, int(id-1)%Bells))
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
