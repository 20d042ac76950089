package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"malt/libmalt"
	"malt/rdma"
)

// deadline is the context of one call with a timeout. Most calls never wait, so
// it looks at the clock only when it is first asked for its end, and makes its
// channel and its timer only when somebody sleeps on it. context.WithTimeout
// would cost more than the call.
type deadline struct {
	timeout time.Duration

	mu    sync.Mutex
	over  bool      // one of the caller's functions has ended it
	begun time.Time // zero until asked for the end
	at    time.Time // its end, or when the function of malt_on_long_wait is called
	done  chan struct{}
	timer *time.Timer
	drops func() // called before each sleep
	lent  bool   // somebody was given what outlives the call: a channel, or a timer
}

var (
	_ rdma.Sleeper    = (*deadline)(nil)
	_ libmalt.Patient = (*deadline)(nil)
	_ libmalt.Drowsy  = (*deadline)(nil)
)

// deadlines keeps one for the next call, so that calls which need not sleep
// allocate none. Of several at a time all but one are made anew.
type deadlines struct{ spare atomic.Pointer[deadline] }

// within is within, reusing the one that is kept.
func (p *deadlines) within(timeoutMs int64, jobs time.Duration) *deadline {
	d := p.spare.Swap(nil)
	if d == nil {
		d = &deadline{}
	}
	d.timeout, d.begun, d.done, d.over, d.drops = timeoutOf(timeoutMs, jobs), time.Time{}, nil, false, nil
	return d
}

// end ends a call's.
func (p *deadlines) end(d *deadline) {
	if d.end(); !d.lent {
		p.spare.Store(d)
	}
}

// maxTimeout keeps time.Duration from overflowing: 100 years.
const maxTimeout = 100 * 365 * 24 * time.Hour

// within is the context of a call with the C argument timeout_ms: 0 tries once
// and does not wait, a negative one takes the job's own. Call end after the
// call.
func within(timeoutMs int64, jobs time.Duration) *deadline {
	return &deadline{timeout: timeoutOf(timeoutMs, jobs)}
}

func timeoutOf(timeoutMs int64, jobs time.Duration) time.Duration {
	switch {
	case timeoutMs < 0:
		return jobs
	case timeoutMs > int64(maxTimeout/time.Millisecond):
		return maxTimeout
	}
	return time.Duration(timeoutMs) * time.Millisecond
}

func (d *deadline) Deadline() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun.IsZero() {
		d.begun = time.Now()
		d.at = d.begun.Add(d.timeout)
		if after := time.Duration(C.maltc_patience()) * time.Millisecond; after >= 0 && after < d.timeout {
			d.at = d.begun.Add(after)
		}
	}
	return d.at, true
}

// GoOn has the caller hear of a wait that is getting long.
func (d *deadline) GoOn(waits error) bool {
	d.mu.Lock()
	waited, until := time.Since(d.begun), d.begun.Add(d.timeout)
	ended := d.over || d.begun.IsZero() || !d.at.Before(until) || waited >= d.timeout
	if !ended {
		d.at, d.done = until, nil
	}
	d.mu.Unlock()
	if ended {
		return false
	}
	kept := C.maltc_keep_error() // the call has not failed
	fail(waits)
	defer C.maltc_restore_error(kept)
	if C.maltc_report(C.int64_t(waited.Milliseconds()), C.int64_t((d.timeout-waited).Milliseconds())) != 0 {
		d.interrupt()
		return false
	}
	return true
}

// interrupt ends it at once.
func (d *deadline) interrupt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.over = time.Now(), true
}

func (d *deadline) left() time.Duration {
	at, _ := d.Deadline()
	return time.Until(at)
}

func (d *deadline) Err() error {
	if d.timeout != 0 && d.left() > 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return libmalt.ErrInterrupted
	}
	return context.DeadlineExceeded
}

func (d *deadline) Done() <-chan struct{} {
	left := d.left()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lent = true
	if d.done == nil {
		done := make(chan struct{})
		d.done = done
		if left <= 0 {
			close(done)
		} else {
			d.timer = time.AfterFunc(left, func() { close(done) })
		}
	}
	return d.done
}

// AfterFunc is what context.AfterFunc asks a foreign context for; without it the
// context package would start a goroutine per wait.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	left := d.left()
	d.mu.Lock()
	d.lent = true
	d.mu.Unlock()
	return time.AfterFunc(left, f).Stop
}

// OnSleep has f called before each sleep.
func (d *deadline) OnSleep(f func()) { d.drops = f }

// Sleep sleeps in C. What the caller's function of malt_look_up can end is the
// time.
func (d *deadline) Sleep(word *uint32, seen uint32) {
	if d.drops != nil {
		d.drops()
	}
	if left := d.left(); left > 0 && C.maltc_sleep(unsafe.Pointer(word), C.uint32_t(seen), C.int64_t(left)) != 0 {
		d.interrupt()
	}
}

func (d *deadline) Value(any) any { return nil }

// end stops the timer, if there is one.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
