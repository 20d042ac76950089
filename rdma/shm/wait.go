package shm

import (
	"context"
	"fmt"
	"time"

	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

// nap is how long one sleep lasts at most. Nothing depends on it: tests run with
// sleeps without end. It bounds how long a mistake in somebody's program, such
// as a signal handler that keeps a thread from being woken, can go unnoticed.
const nap = 50 * time.Millisecond

// policyFor is how to wait with size ranks on this machine. While every rank has
// a core of its own, what a wait is for comes within microseconds, and looking
// is faster than being woken. With more ranks than cores who looks keeps the one
// waited for from running: give the core away at once.
func policyFor(size int) rendezvous.Policy {
	p := rendezvous.Policy{Yield: 1000, Sleep: nap}
	if size <= mem.Cores() {
		p.Spin = 20_000
	}
	return p
}

// Wait also ends when t, which may be a sub, is closed.
func (t *transport) Wait(ctx context.Context, step func() bool) error {
	var closed error
	err := t.host.Wait(ctx, t.bell, t.policy, func() bool {
		if step() {
			return true
		}
		closed = t.check()
		return closed != nil
	})
	if closed != nil {
		return closed
	}
	if err != nil {
		return fmt.Errorf("shm: rank %d: %w", t.Rank(), err)
	}
	return nil
}

// Wake rings this transport's own doorbell.
func (t *transport) Wake() { t.host.Ring(t.host.BellID(t.bell)) }
