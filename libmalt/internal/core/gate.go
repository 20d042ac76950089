package core

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"malt/internal/say"
)

// Gate lets one call at a time into an object.
type Gate struct {
	mu       sync.Mutex
	borrowed atomic.Int32
	late     atomic.Bool // its last wait ran into its timeout: Failures.late says more
	waiter   waiter
}

// Borrow locks the gate for a moment unless a call is inside. A call that comes
// meanwhile waits for GiveBack.
func (g *Gate) Borrow() bool {
	g.borrowed.Add(1)
	if g.mu.TryLock() {
		return true
	}
	g.borrowed.Add(-1)
	return false
}

func (g *Gate) GiveBack() {
	g.mu.Unlock()
	g.borrowed.Add(-1)
}

// Enter locks the gate for a call on owner; ErrBusy if another one is inside.
func (g *Gate) Enter(owner fmt.Stringer) error {
	if !g.enter() {
		return say.Errorf(ErrBusy, "%s is busy: it serves one call at a time", owner).
			At("another thread is in a call on it, or its fold is running").
			Try("Wait for that call, use a lock, or give each thread its own vector.")
	}
	return nil
}

func (g *Gate) enter() bool {
	for !g.mu.TryLock() {
		if g.borrowed.Load() == 0 {
			return g.mu.TryLock()
		}
		runtime.Gosched()
	}
	return true
}

// Leave unlocks it.
func (g *Gate) Leave() { g.mu.Unlock() }

// Run carries out the call that begin makes. With hold, a call that succeeds leaves the
// gate locked.
func (g *Gate) Run(ctx context.Context, m *Marks, f *Failures, owner fmt.Stringer, hold bool, begin func() (Stepper, error)) (err error) {
	if err := g.Enter(owner); err != nil {
		return err
	}
	defer func() {
		if !hold || err != nil {
			g.mu.Unlock()
		}
	}()
	begun := m.Trace.Begin()
	op, err := begin()
	if err == nil {
		err = f.out(op)
	}
	if err != nil {
		return err
	}
	err = g.waiter.await(ctx, m, op)
	f.book(m.t, g, err)
	if begun != 0 {
		m.Trace.called(begun, op.Name(), err)
	}
	return err
}
