package core

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"malt/rdma"
)

// A kernel acknowledges what comes for its processes, whatever these do. So that the
// error of a wait can tell a process that does not run from one that does, a waiter asks
// the processes of other hosts for an answer before its time is up. The error is made
// of what is known then: nobody waits longer because of it.

const (
	// For so long before the end of a wait, or for half of a shorter one.
	askBefore = time.Second
	// From when on a process that has not answered says nothing; and until when.
	mute, forgotten = 100 * time.Millisecond, 2 * time.Second
)

// asker asks for one waiter. Its timer stays set from one wait to the next, so that
// those which end in time do not touch it.
type asker struct {
	m     *Marks
	timer *time.Timer
	due   atomic.Int64 // when to ask, since started; 0: nobody waits
	fires atomic.Int64 // when the timer does; 0: it is not set
}

var started = time.Now()

// arm is for the beginning of a wait.
func (a *asker) arm(ctx context.Context, m *Marks) {
	if m.asked == nil {
		return
	}
	at, limited := ctx.Deadline()
	if !limited {
		return
	}
	if a.timer == nil {
		a.m, a.timer = m, time.AfterFunc(math.MaxInt64, a.fire) // set below: look may need it at once
	}
	left := time.Until(at)
	due := time.Since(started) + max(left-askBefore, left/2)
	a.due.Store(int64(due))
	if fires := a.fires.Load(); fires != 0 && fires <= int64(due) {
		return
	}
	a.fires.Store(int64(due))
	a.timer.Reset(time.Until(started.Add(due)))
}

// disarm is for its end.
func (a *asker) disarm() { a.due.Store(0) }

// fire is what the timer does: ask, or wait on where another wait has begun meanwhile.
func (a *asker) fire() {
	a.fires.Store(0)
	due := a.due.Load()
	switch left := time.Duration(due) - time.Since(started); {
	case due == 0:
	case left <= 0:
		a.m.ask()
	case a.fires.CompareAndSwap(0, due):
		a.timer.Reset(left)
	}
}

// ask asks the processes of ranks on other hosts for an answer, and notes which of them
// give none.
func (m *Marks) ask() {
	ctx, stop := context.WithTimeout(context.Background(), askBefore)
	defer stop()
	now := int64(time.Since(started))
	for r := range m.asked {
		if !slices.Contains(m.t.Near(), r) {
			m.asked[r].Store(now)
		}
	}
	m.Set(markGreeting, m.greetings.Add(1))
	_ = m.t.Wait(ctx, func() bool { // without an answer: mute says so
		all := true
		for r := range m.asked {
			if m.asked[r].Load() == now && m.Heard(r) {
				m.asked[r].Store(0)
			}
			all = all && m.asked[r].Load() != now
		}
		return all
	})
}

// mute tells whether a rank's process was asked, and has not answered.
func (m *Marks) mute(rank int) bool {
	if m.asked == nil {
		return false
	}
	at := m.asked[rank].Load()
	since := time.Since(started) - time.Duration(at)
	return at != 0 && since > mute && since < forgotten
}

// askable is room for what ask notes; nil where there is no other host.
func askable(t rdma.Transport) []atomic.Int64 {
	if _, ok := t.(rdma.Connected); !ok || len(t.Near()) == t.Size() {
		return nil
	}
	return make([]atomic.Int64, t.Size())
}
