// Package progress is the one goroutine of a process that works for engines while the
// user's loop computes: it forwards, adds up, answers.
//
// An engine adds a poll, and makes its boxes through the transport that Add returns, so that
// they ring the goroutine. Poll looks at them and does what there is to do; it never blocks,
// and never calls the user's code. The engine has a lock for what the poll and the calls of
// its object share. A call that has given the poll something to do rings it with Wake
// of that transport; a poll that has done what a call waits for, with Wake of the job's.
//
// The goroutine begins with the first poll and ends with the last.
package progress

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"malt/rdma"
)

// Loop is the goroutine of one rank.
type Loop struct {
	parent rdma.Transport

	adding sync.Mutex     // one Add or remove at a time; before mu
	sub    rdma.Transport // of the goroutine that runs; nil: none does
	stop   context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex // held while polls run
	polls []*func() bool
	runs  atomic.Bool // there are some
}

// New is for a rank; no goroutine runs yet.
func New(t rdma.Transport) *Loop { return &Loop{parent: t} }

// Add has poll called whenever something rings the transport, and again at once where it
// returns true. remove returns when poll does not run and never will again; a poll must not
// call it. The transport is valid until then.
func (l *Loop) Add(poll func() bool) (t rdma.Transport, remove func() error, err error) {
	l.adding.Lock()
	defer l.adding.Unlock()
	if l.sub == nil {
		if l.sub, err = l.parent.Sub(); err != nil {
			return nil, nil, err
		}
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		l.ended = make(chan struct{})
		go l.run(ctx, l.sub, l.ended)
	}
	own := &poll
	l.mu.Lock()
	l.polls = append(l.polls, own)
	l.runs.Store(true)
	l.mu.Unlock()
	l.sub.Wake()
	return l.sub, sync.OnceValue(func() error { return l.remove(own) }), nil
}

func (l *Loop) remove(own *func() bool) error {
	l.adding.Lock()
	defer l.adding.Unlock()
	l.mu.Lock()
	l.polls = slices.DeleteFunc(slices.Clone(l.polls), func(p *func() bool) bool { return p == own })
	last := len(l.polls) == 0
	l.runs.Store(!last)
	l.mu.Unlock()
	if !last {
		return nil
	}
	l.stop()
	<-l.ended
	err := l.sub.Close()
	l.sub = nil
	return err
}

// Runs tells whether there are polls, none of a Loop that is nil; Wake has them called, for what rings another doorbell.
func (l *Loop) Runs() bool { return l != nil && l.runs.Load() }

func (l *Loop) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.polls) > 0 {
		l.sub.Wake()
	}
}

// run is the goroutine.
func (l *Loop) run(ctx context.Context, t rdma.Transport, ended chan struct{}) {
	defer close(ended)
	_ = t.Wait(ctx, func() bool { // ends with ctx
		for l.pass() && ctx.Err() == nil {
		}
		return false
	})
}

// pass calls all polls once; true: one of them has more to do.
func (l *Loop) pass() (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, poll := range l.polls {
		again = (*poll)() || again
	}
	return again
}
