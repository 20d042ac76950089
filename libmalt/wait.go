package libmalt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"malt/internal/say"
	"malt/rdma"
)

// stepper is a call that may have to wait: a state machine that goes as far as
// it can at each step. Because all it has done lies in its own fields, a call
// that runs into its timeout can go on later where it was.
type stepper interface {
	// step goes on; it never blocks. After done or an error it is not called
	// again.
	step() (done bool, err error)
	// call is what a program writes for it; waiting, what the last step could not go
	// on without.
	call() string
	waiting() wait
	// suspend is called when the context ends before the call does. Further steps
	// may follow, much later.
	suspend()
	// giveUp undoes what others must not wait for. It is called instead of
	// further steps.
	giveUp()
}

// call tells one call of an object or of the job from another.
type call struct {
	key string
	of  *Segment // whose memory a call of the job uses, if any; names alone are not unique
}

// gate lets one call at a time into an object, and keeps the place of one that
// ran into its timeout.
type gate struct {
	mu       sync.Mutex
	borrowed atomic.Int32
	call     call // of op
	op       stepper
	late     atomic.Bool   // its last wait ran into its timeout: World.late says more
	keeping  *atomic.Int32 // counts the gates that have an op; nil: nobody asks
	waiter   waiter
}

// borrow locks the gate for a moment unless a call is inside. A call that comes
// meanwhile waits for giveBack.
func (g *gate) borrow() bool {
	g.borrowed.Add(1)
	if g.mu.TryLock() {
		return true
	}
	g.borrowed.Add(-1)
	return false
}

func (g *gate) giveBack() {
	g.mu.Unlock()
	g.borrowed.Add(-1)
}

// enter locks the gate for a call; false if another one is inside.
func (g *gate) enter() bool {
	for !g.mu.TryLock() {
		if g.borrowed.Load() == 0 {
			return g.mu.TryLock()
		}
		runtime.Gosched()
	}
	return true
}

// run carries out a call: the one that keeps its place if it is the same, else
// the one that begin makes. again, which may be nil, prepares the one that kept
// its place to go on. With hold, a call that succeeds leaves the gate locked.
func (g *gate) run(ctx context.Context, w *World, owner fmt.Stringer, which call, hold bool, begin func() (stepper, error), again func(stepper) error) (op stepper, err error) {
	if !g.enter() {
		return nil, busy(owner)
	}
	defer func() {
		if !hold || err != nil {
			g.mu.Unlock()
		}
	}()
	if op = g.op; op == nil {
		if op, err = begin(); err != nil {
			return nil, err
		}
	} else if g.call != which {
		return nil, keptPlace(which.key, owner, g.call.key)
	} else if again != nil {
		if err = again(op); err != nil {
			return nil, err
		}
	}
	g.keep(call{}, nil)
	err = g.waiter.await(ctx, w.t, op)
	w.book(g, err)
	if _, out := err.(*timeout); out {
		g.keep(which, op)
	}
	return op, err
}

// busy refuses a second call on owner.
func busy(owner fmt.Stringer) error {
	return say.Errorf(ErrBusy, "%s is in another call, and serves one at a time", owner).
		At("that call is of another thread, or the fold that is running").
		Try("Wait for it, use a lock, or a vector for each thread.")
}

func keptPlace(key string, owner fmt.Stringer, kept string) error {
	return say.Errorf(ErrBusy, "%s: %s, which timed out, keeps its place", callOf(key), callOf(kept)).In(callOf(key)).
		At("%s serves one call at a time", owner).Try("Make the call that timed out again, or cancel it first.")
}

// keep gives op a place; nil: no call has one any more.
func (g *gate) keep(which call, op stepper) {
	if g.call.of != nil {
		g.call.of.kept.Store(nil)
	}
	if which.of != nil {
		key := which.key
		which.of.kept.Store(&key)
	}
	switch {
	case g.keeping == nil:
	case op != nil && g.op == nil:
		g.keeping.Add(1)
	case op == nil && g.op != nil:
		g.keeping.Add(-1)
	}
	g.call, g.op = which, op
}

// cancel is giveUp of an object that nobody has locked. It does not wait for a
// call of another goroutine to end: that may take as long as its timeout.
func (g *gate) cancel(owner fmt.Stringer) error {
	if !g.enter() {
		return say.Errorf(ErrBusy, "cancel: %s is in a call of another thread, or in a fold", owner).
			Try("Cancel gives up a call that has returned with a timeout.")
	}
	defer g.mu.Unlock()
	g.giveUp()
	return nil
}

// giveUp gives up the call that keeps its place, if there is one.
func (g *gate) giveUp() {
	if g.op != nil {
		g.op.giveUp()
		g.keep(call{}, nil)
	}
}

// waiter runs the calls of a gate, one at a time. What a wait needs is kept in it
// from one to the next, so that waiting allocates nothing.
type waiter struct {
	t    rdma.Transport
	op   stepper
	done bool
	err  error
	step func() bool // advances op, for Transport.Wait
}

// await runs op to its end or until ctx ends. The first step is taken before
// anything that costs: most calls need no wait.
func (w *waiter) await(ctx context.Context, t rdma.Transport, op stepper) error {
	if done, err := advance(t, op); done || err != nil {
		return err
	}
	if ctx.Err() == nil {
		if w.step == nil {
			w.step = func() bool {
				w.done, w.err = advance(w.t, w.op)
				return w.done || w.err != nil
			}
		}
		w.t, w.op, w.done, w.err = t, op, false, nil
		waitErr := t.Wait(ctx, w.step)
		w.op = nil
		if w.done || w.err != nil {
			return w.err
		}
		if waitErr != nil && ctx.Err() == nil {
			op.giveUp()
			return waitErr
		}
	}
	op.suspend()
	return expired(ctx, op.waiting())
}

// advance is a step of op that ends it where a rank has died. No wait outlasts a
// death, whomever it is for: the ones waited for may themselves be stuck on the
// dead rank, or may have failed because of it. For the same reason a death
// explains why another rank has left or given up.
func advance(t rdma.Transport, op stepper) (done bool, err error) {
	done, err = op.step()
	if done || err != nil {
		return done, blame(t, op, err)
	}
	dead := death(t)
	if dead == nil {
		return false, nil
	}
	// Once more, now that the death is known: what the rank had sent counts.
	done, err = op.step()
	if done || err != nil {
		return done, blame(t, op, err)
	}
	op.giveUp()
	return false, dead.During(op.call())
}

// blame is err, of op; where that says that a rank has left, and one has died, the
// death.
func blame(t rdma.Transport, op stepper, err error) error {
	dead := deathIn(err)
	if errors.Is(err, ErrLeft) || errors.Is(err, rdma.ErrLeft) {
		dead = death(t)
	}
	if dead != nil {
		return dead.During(op.call())
	}
	return err
}

// death is what the lowest rank that is dead has died of; nil where all live or
// have left in good order.
func death(t rdma.Transport) *rdma.PeerError {
	for r := range t.Size() {
		if r != t.Rank() {
			if dead := deathIn(t.State(r)); dead != nil {
				return dead
			}
		}
	}
	return nil
}

// deathIn is the *rdma.PeerError in the word of a transport on a rank, if it is one.
func deathIn(state error) *rdma.PeerError {
	if state == nil {
		return nil // before what allocates: it is asked for in every step
	}
	var dead *rdma.PeerError
	errors.As(state, &dead)
	return dead
}
