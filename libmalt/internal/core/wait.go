package core

import (
	"cmp"
	"context"
	"errors"

	"malt/internal/say"
	"malt/rdma"
)

// Timeout is ErrTimeout that errors.Is also finds as the context's error.
type Timeout struct {
	Said  *say.Error
	Cause error
}

func (t *Timeout) Error() string   { return t.Said.Error() }
func (t *Timeout) Unwrap() []error { return []error{t.Said, t.Cause} }

// expired makes the error of a wait whose time is up. Where it cannot be decided who takes
// part, the wait was for that: this rank may be on the smaller side of a cut, or a host stopped.
func expired(t rdma.Transport, w Wait) *Timeout {
	said := &say.Error{
		Kind: ErrTimeout, Call: w.Call, What: w.Call + " timed out", Where: "waited for " + w.Whom, Do: w.Do, Topic: w.More,
	}
	if views, ok := t.(rdma.Viewed); ok {
		if stuck, _ := views.Stuck(); stuck != nil {
			of := say.Of(stuck)
			if said.Where, said.Do, said.Topic = of.Where, of.Do, of.Topic; errors.Is(stuck, rdma.ErrExpelled) {
				said.Kind = of.Kind
			}
		}
	}
	return &Timeout{said, context.DeadlineExceeded}
}

// Booked is a call of the job that waits on the account of an object.
type Booked interface{ Counts() *Stats }

// waiter runs the calls of a gate, one at a time. It keeps the memory of a wait for the
// next one, so that waiting allocates nothing.
type waiter struct {
	counts *Stats // of its object, or of the job
	op     Stepper
	done   bool
	err    error
	step   func() bool // advances op, for Transport.Wait
	ask    asker
	late   lateness
	m      *Marks
	// asleep is called before a sleep, by a Drowsy context.
	asleep func()
}

// Patient is a context that a call asks, when it has ended, whether to go on. waits is
// the error that the call returns if not; if so, the context has begun anew.
type Patient interface {
	context.Context
	GoOn(waits error) bool
}

// Elapsing is a call for which it is not an error that the time of its context is up.
type Elapsing interface{ Elapses() }

// Drowsy is a context that calls what it was given before each of its sleeps (rdma.Sleeper).
type Drowsy interface{ OnSleep(f func()) }

// await runs op to its end, or until ctx ends; then the call is given up.
func (w *waiter) await(ctx context.Context, m *Marks, op Stepper) error {
	w.late.counts = w.counts
	if b, ok := op.(Booked); ok {
		w.late.counts = b.Counts()
	}
	for {
		if done, err := w.wait(ctx, m, op); done || err != nil {
			w.late.end(m.Trace, op)
			return err
		}
		out := expired(m.t, op.Waiting())
		w.late.long(m.Trace, out.Said.Do)
		if p, ok := ctx.(Patient); !ok || !p.GoOn(out) {
			w.late.end(m.Trace, op)
			out.Cause = cmp.Or(ctx.Err(), out.Cause)
			op.GiveUp()
			if _, ok := op.(Elapsing); ok && errors.Is(out.Cause, context.DeadlineExceeded) {
				return nil
			}
			return out
		}
	}
}

// wait runs op until ctx ends. The first step is taken before anything that costs: most
// calls need no wait.
func (w *waiter) wait(ctx context.Context, m *Marks, op Stepper) (done bool, err error) {
	if done, err := advance(m, op); done || err != nil || ctx.Err() != nil {
		return done, err
	}
	if w.step == nil {
		w.step = func() bool {
			w.done, w.err = advance(w.m, w.op)
			w.m.moved()
			if !w.done && w.err == nil {
				w.late.look(w.m.Trace, w.op)
			}
			return w.done || w.err != nil
		}
		w.asleep = func() { w.late.asleep(w.m.Trace, w.op) }
	}
	w.m, w.op, w.done, w.err = m, op, false, nil
	w.late.look(m.Trace, op)
	w.ask.arm(ctx, m)
	if d, ok := ctx.(Drowsy); ok {
		d.OnSleep(w.asleep)
	}
	waitErr := m.t.Wait(ctx, w.step)
	w.ask.disarm()
	w.op = nil
	if !w.done && w.err == nil && waitErr != nil && ctx.Err() == nil {
		op.GiveUp()
		return false, waitErr
	}
	return w.done, w.err
}

// advance is a step of op that ends it where a rank has died, unless the job goes on.
// Otherwise no wait outlasts a death, whomever it is for: the ones waited for may themselves be stuck on the
// dead rank, or may have failed because of it. For the same reason a death
// explains why another rank has left or given up.
func advance(m *Marks, op Stepper) (done bool, err error) {
	t := m.t
	done, err = op.Step()
	if done || err != nil {
		return done, blame(t, op, err)
	}
	if out := out(t, op, false); out != nil {
		op.GiveUp()
		return false, out
	}
	dead := m.death()
	if dead == nil {
		return false, nil
	}
	// Once more, now that the death is known: what the rank had sent counts.
	done, err = op.Step()
	if done || err != nil {
		return done, blame(t, op, err)
	}
	op.GiveUp()
	return false, blame(t, op, dead)
}

// blame is err, of op; where that says that a rank has left, and one has died, the
// death. To a rank without which the others have gone on all of them are gone.
func blame(t rdma.Transport, op Stepper, err error) error {
	dead, left := DeathIn(err), errors.Is(err, ErrLeft) || errors.Is(err, rdma.ErrLeft)
	if left {
		dead = Death(t)
	}
	if dead != nil || left {
		if out := out(t, op, true); out != nil {
			return out
		}
	}
	if dead != nil {
		return dead.During(op.Name())
	}
	return err
}

// Death is what the lowest rank that is dead has died of; nil where all live or
// have left in good order, or the job goes on without those that died.
func Death(t rdma.Transport) *rdma.PeerError {
	for r := range t.Size() {
		if r != t.Rank() {
			if dead := DeathIn(t.State(r)); dead != nil && !LeftOut(t, r) {
				return dead
			}
		}
	}
	return nil
}

// DeathIn is the *rdma.PeerError in the word of a transport on a rank, if it is one.
func DeathIn(state error) *rdma.PeerError {
	if state == nil {
		return nil // before what allocates: it is asked for in every step
	}
	var dead *rdma.PeerError
	errors.As(state, &dead)
	return dead
}
