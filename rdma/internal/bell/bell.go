// Package bell is the doorbell of a rank that is rung by goroutines of its own process:
// in package rdmatest/inmem by the other ranks, in package remote by the goroutines that receive for
// it.
//
// All waiting is on sync.Cond, without a clock, a futex or polling: a goroutine
// that waits gives its processor away at once, and in a testing/synctest bubble
// it is durably blocked. Only a Sleeper sleeps on a futex.
package bell

import (
	"context"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Doorbell is what one goroutine of a rank waits at, and a way to the others.
type Doorbell interface {
	BellID() uint64 // above 0 and below 1 << 32
	Wake()
	Wait(ctx context.Context, step func() bool) error // is that of rdma.Transport

	RingBell(id uint64) // one of near ranks
	RingBells()         // all of this rank and its subs
}

// Bell is a count of rings that one can wait on. The count is read before the
// condition that the caller waits for is looked at; so a ring that comes between
// the look and the wait is not lost.
type Bell struct {
	owner    int
	mu       sync.Mutex   // held where the count changes
	rung     sync.Cond    // count has changed
	count    *mem.Word    // apart, since C may be given its address
	sleepers atomic.Int32 // who sleep, or are about to, on count itself
}

// New is a bell outside any Set.
func New(owner int) *Bell {
	b := &Bell{owner: owner, count: new(mem.Word)}
	b.rung.L = &b.mu
	return b
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	b.count.Add(1)
	b.mu.Unlock()
	b.rung.Broadcast()
	if b.sleepers.Load() > 0 { // after the count has changed; they look the other way round
		mem.FutexWake(b.count)
	}
}

func (b *Bell) now() uint64 { return b.count.Load() }

// after waits until the count is no longer seen. A sleeper that is not nil may
// be back earlier.
func (b *Bell) after(seen uint64, sleeper rdma.Sleeper) {
	if sleeper != nil {
		b.sleepers.Add(1)
		sleeper.Sleep(mem.Low(b.count), uint32(seen))
		b.sleepers.Add(-1)
		return
	}
	b.mu.Lock()
	for b.count.Load() == seen {
		b.rung.Wait()
	}
	b.mu.Unlock()
}

// Wait runs step until it returns true, once now and again after every ring. A ctx that
// is done rings too.
func (b *Bell) Wait(ctx context.Context, step func() bool) error {
	sleeper, _ := ctx.(rdma.Sleeper)
	if sleeper == nil && ctx.Done() != nil {
		stop := context.AfterFunc(ctx, b.Ring)
		defer stop()
	}
	for {
		seen := b.now()
		if step() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		b.after(seen, sleeper)
	}
}
