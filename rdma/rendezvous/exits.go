package rendezvous

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma/internal/mem"
)

// Where the job goes on when a rank dies, a rank that waits looks for processes that are
// ending: the kernel gives their memory back first, and says so afterwards (mem.Exiting).
// It does not know which of the others it waits for in the end, so it looks at all, some at
// a time.
const (
	lookAfter = 2 * time.Millisecond // of a wait
	lookEvery = 5 * time.Millisecond
	lookAt    = 16 // processes in one look
)

// exits looks while a call of this rank sleeps. Its timer stays set from one wait to the next,
// so that those which end soon do not set it each time.
type exits struct {
	h      *Host
	sleeps atomic.Int64 // calls that sleep, or have in this wait
	due    atomic.Int64 // when to look, since began
	set    atomic.Bool  // the timer is, or fire runs
	began  time.Time
	timer  *time.Timer

	mu   sync.Mutex
	next int // of h.members; under mu
}

func newExits(h *Host) *exits {
	e := &exits{h: h, began: time.Now()}
	e.timer = time.AfterFunc(time.Hour, e.fire)
	e.timer.Stop()
	context.AfterFunc(h.ctx, func() { e.timer.Stop() })
	return e
}

// sleep says that a call is about to sleep for the first time, awake that its wait is over.
func (e *exits) sleep() {
	if e.sleeps.Add(1) == 1 {
		e.due.Store(int64(time.Since(e.began) + lookAfter))
	}
	e.arm()
}

func (e *exits) awake() { e.sleeps.Add(-1) }

// arm sets the timer, unless it is.
func (e *exits) arm() {
	if e.set.CompareAndSwap(false, true) {
		e.timer.Reset(lookAfter)
	}
}

// fire looks if a call has slept long enough.
func (e *exits) fire() {
	if e.sleeps.Load() == 0 || e.h.ctx.Err() != nil {
		e.set.Store(false)
		if e.sleeps.Load() > 0 && e.h.ctx.Err() == nil { // since
			e.arm()
		}
		return
	}
	if left := time.Duration(e.due.Load()) - time.Since(e.began); left > 0 {
		e.timer.Reset(left)
		return
	}
	e.look()
	e.timer.Reset(lookEvery)
}

// look publishes the deaths that it finds.
func (e *exits) look() {
	if !e.h.guard.Enter() {
		return
	}
	defer e.h.guard.Exit()
	e.mu.Lock()
	defer e.mu.Unlock()
	for range min(lookAt, len(e.h.members)) {
		rank := e.h.members[e.next%len(e.h.members)]
		e.next++
		if p := e.h.deaths.process(rank); p != nil && e.h.page.state(rank).Load() < left && p.Exiting() {
			e.h.deaths.publish(rank)
		}
	}
}

// process is the one that is watched as rank; nil: none, or it has ended.
func (d *deaths) process(rank int) *mem.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.procs[rank]
}
