package libmalt

import (
	"context"
	"errors"
	"fmt"

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

// ErrInterrupted is the error of a context that ended because its caller wanted it
// to, before its time.
var ErrInterrupted = errors.New("interrupted")

// book notes how a call behind g that may have waited has ended.
func (w *World) book(g *gate, err error) {
	if err == nil && !g.late.Load() && !w.gate.late.Load() {
		return // the usual
	}
	dead := deathIn(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch late, out := err.(*timeout); {
	case dead != nil:
		if w.failed == nil {
			w.failed = dead
		}
	case out && !errors.Is(err, ErrInterrupted) && !errors.Is(err, context.Canceled):
		g.late.Store(true)
		w.late[g] = late.said.What + ", and " + late.said.Where
	default:
		for _, g := range []*gate{g, &w.gate} {
			g.late.Store(false)
			delete(w.late, g)
		}
	}
}

// failure is why this rank is to be dead to the others when it leaves; nil: it leaves
// in good order.
func (w *World) failure() *rdma.PeerError {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	for _, sentence := range w.late {
		return rdma.HasFailed(w.rank, fmt.Sprintf("it has left after a timeout: %s", sentence))
	}
	return nil
}
