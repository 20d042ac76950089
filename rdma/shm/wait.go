package shm

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

// nap is how long one sleep lasts at most. Waits are ended by rings, and tests
// run with sleeps without end; a nap bounds what it costs when a process is
// stopped in the middle of ringing.
const nap = 50 * time.Millisecond

// policyFor is how to wait with so many ranks on this machine, which has so many cores for
// them, and whether there are more elsewhere. While every rank has a core of its own,
// looking is faster than being woken, and ranks that train come within a millisecond of each
// other. With more ranks than cores a rank that looks keeps others from running: it yields the
// core to them, and sleeps soon. Updates from elsewhere take longer, and goroutines of this
// process that receive them need the core: sleep soon.
func policyFor(here, cores int, elsewhere bool) rendezvous.Policy {
	p := rendezvous.Policy{Yield: 40 * time.Microsecond, Sleep: nap}
	switch {
	case elsewhere:
		p.Yield = 10 * time.Microsecond
	case here <= cores:
		p.Spin, p.Yield = 200, time.Millisecond
	}
	return p
}

// Cores implements rdma.Cored.
func (t *Transport) Cores() int { return coresOf(t.Host) }

// coresOf is how many cores the ranks of a machine have. Where GOMAXPROCS is less than what
// this process may use, it knows of a control group's share of processor time.
func coresOf(h *rendezvous.Host) int {
	if share := runtime.GOMAXPROCS(0); share < mem.Cores(0) {
		return min(share, h.Cores())
	}
	return h.Cores()
}

// WaitAs has this transport and its subs wait as p says, before any of them does.
func (t *Transport) WaitAs(p rendezvous.Policy) { t.policy = p }

// Wait also ends when t, which may be a sub, is closed.
func (t *Transport) Wait(ctx context.Context, step func() bool) error {
	var closed error
	err := t.Host.Wait(ctx, t.bell, t.policy, func() bool {
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
		return fmt.Errorf("rank %d: %w", t.Rank(), err)
	}
	return nil
}

// Wake rings this transport's own doorbell.
func (t *Transport) Wake() { t.Host.Ring(t.Host.BellID(t.bell)) }
