package inmem

import (
	"context"
	"sync"
)

// bell is a doorbell: a count of rings that one can wait on. The count is read
// before the condition that the caller waits for is looked at; so a ring that
// comes between the look and the wait is not lost.
type bell struct {
	rank  int
	mu    sync.Mutex
	rung  sync.Cond // count has changed
	count uint64
}

func newBell(rank int) *bell {
	b := &bell{rank: rank}
	b.rung.L = &b.mu
	return b
}

func (b *bell) ring() {
	b.mu.Lock()
	b.count++
	b.mu.Unlock()
	b.rung.Broadcast()
}

func (b *bell) now() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// after waits until the count is no longer seen.
func (b *bell) after(seen uint64) {
	b.mu.Lock()
	for b.count == seen {
		b.rung.Wait()
	}
	b.mu.Unlock()
}

// wait runs step until it returns true or an error, once now and again after
// every ring. A ctx that is done rings too.
func (b *bell) wait(ctx context.Context, step func() (bool, error)) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, b.ring)
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
