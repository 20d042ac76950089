package core

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"malt/rdma"
)

// A rank that leaves says to the others how: in good order, after which they go on
// without it, or as dead, after which they cannot. It is dead to them, whatever its
// program makes of the error, once it has
//
//   - got a *rdma.PeerError: the job is over, for all;
//   - got ErrTimeout from an object, and no later call there that may wait has ended
//     in another way; or from a collective call, and no later call at all.
//
// A call that its caller has ended before its time does not count.

// Failures are what makes this rank dead to the others when it leaves.
type Failures struct {
	rank  int
	job   *Gate       // of the collective calls
	views rdma.Viewed // of a job that goes on when ranks die

	mu     sync.Mutex
	failed *rdma.PeerError  // the first that a call has returned
	late   map[*Gate]string // whose last wait ran into its timeout: what it said
}

// NewFailures is for a rank with that gate of the collective calls.
func NewFailures(rank int, job *Gate) *Failures {
	return &Failures{rank: rank, job: job, late: map[*Gate]string{}}
}

// out is the error of op where the others have gone on without this rank.
func (f *Failures) out(op Stepper) error {
	if f.views == nil {
		return nil
	}
	return out(f.views, op, false)
}

// book notes how a call behind g that may have waited has ended.
func (f *Failures) book(t rdma.Transport, g *Gate, err error) {
	if err == nil && !g.late.Load() && !f.job.late.Load() {
		return // the usual
	}
	dead := DeathIn(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch late, out := err.(*Timeout); {
	case dead != nil && !LeftOut(t, dead.Rank):
		if f.failed == nil {
			f.failed = dead
		}
	case out && !errors.Is(err, ErrInterrupted) && !errors.Is(err, context.Canceled):
		g.late.Store(true)
		f.late[g] = late.Said.What + ", and " + late.Said.Where
	default:
		for _, g := range []*Gate{g, f.job} {
			g.late.Store(false)
			delete(f.late, g)
		}
	}
}

// Reason is why this rank is to be dead to the others when it leaves; nil: it leaves
// in good order.
func (f *Failures) Reason() *rdma.PeerError {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	for _, sentence := range f.late {
		return rdma.HasFailed(f.rank, fmt.Sprintf("it has left after a timeout: %s", sentence))
	}
	return nil
}

// Death is the first that a call has returned; nil: none has.
func (f *Failures) Death() *rdma.PeerError {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}
