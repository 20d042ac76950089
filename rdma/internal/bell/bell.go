// Package bell is the doorbell of ranks that are rung by goroutines of their own
// process: in package inmem by the other ranks, in package tcp by those that
// receive for them.
//
// All waiting is on sync.Cond, without a clock, a futex or polling: a goroutine
// that waits gives its processor away at once, and in a testing/synctest bubble
// it is durably blocked.
package bell

import (
	"context"
	"sync"
)

// Bell is a count of rings that one can wait on. The count is read before the
// condition that the caller waits for is looked at; so a ring that comes between
// the look and the wait is not lost.
type Bell struct {
	owner int
	mu    sync.Mutex
	rung  sync.Cond // count has changed
	count uint64
}

// New is a bell outside any Set.
func New(owner int) *Bell {
	b := &Bell{owner: owner}
	b.rung.L = &b.mu
	return b
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	b.count++
	b.mu.Unlock()
	b.rung.Broadcast()
}

func (b *Bell) now() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// after waits until the count is no longer seen.
func (b *Bell) after(seen uint64) {
	b.mu.Lock()
	for b.count == seen {
		b.rung.Wait()
	}
	b.mu.Unlock()
}

// Wait runs step until it returns true or an error, once now and again after
// every ring. A ctx that is done rings too.
func (b *Bell) Wait(ctx context.Context, step func() (bool, error)) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, b.Ring)
		defer stop()
	}
	for {
		seen := b.now()
		if ok, err := step(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		b.after(seen)
	}
}
