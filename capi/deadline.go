package main

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of one call with a timeout. Most calls never wait, so
// it makes its channel and its timer only when somebody sleeps on it; until then
// Err just looks at the clock. context.WithTimeout would cost more than the
// call.
type deadline struct {
	at    time.Time
	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
}

// maxTimeout keeps time.Duration from overflowing: 100 years.
const maxTimeout = 100 * 365 * 24 * time.Hour

// within is the context of a call with the C argument timeout_ms: 0 tries once
// and does not wait, a negative one takes the job's own. Call end after the
// call.
func within(timeoutMs int64, jobs time.Duration) *deadline {
	t := jobs
	switch {
	case timeoutMs == 0:
		return &deadline{} // the year 1 is over
	case timeoutMs > int64(maxTimeout/time.Millisecond):
		t = maxTimeout
	case timeoutMs > 0:
		t = time.Duration(timeoutMs) * time.Millisecond
	}
	return &deadline{at: time.Now().Add(t)}
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) Err() error {
	if d.at.IsZero() || !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		done := make(chan struct{})
		d.done = done
		if d.Err() != nil {
			close(done)
		} else {
			d.timer = time.AfterFunc(time.Until(d.at), func() { close(done) })
		}
	}
	return d.done
}

// AfterFunc is what context.AfterFunc asks a foreign context for; without it the
// context package would start a goroutine per wait.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	return time.AfterFunc(time.Until(d.at), f).Stop
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
