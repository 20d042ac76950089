package tcp

import (
	"errors"
	"syscall"
	"time"
)

// Whether a peer's host is there is the kernels' to say, not the processes':
// one that is stopped answers nothing, and is alive. An idle connection is asked
// once a second by keep-alive, and one with data on its way is acknowledged. But
// a receiver that is stopped for long is asked more and more seldom, and after
// an outage the kernel waits longer than it lasted. So when a connection has
// been silent for a while the peer is dialled: who accepts, even in a process
// that is stopped, is there.

// watch looks after all links.
func (r *rank) watch() {
	tick := time.NewTicker(r.cfg.Unreachable / 20)
	defer tick.Stop()
	for {
		select {
		case <-r.unwatch:
			return
		case <-tick.C:
		}
		for _, l := range r.links {
			if l == nil {
				continue
			}
			if c := l.current(); c != nil && c.silentFor(l.suspicious()) && l.probing.CompareAndSwap(false, true) {
				r.watching.Go(func() {
					defer l.probing.Store(false)
					l.doubt(c)
				})
			}
		}
	}
}

// suspicious is the silence from which on a peer is dialled.
func (l *link) suspicious() time.Duration { return l.rank.cfg.Unreachable * 2 / 5 }

func (c *conn) silentFor(d time.Duration) bool {
	s, ok := c.state()
	return ok && s.Silence >= d
}

// doubt dials until c is heard of again, or the link is given up. A connection
// that is accepted is kept, and asked by keep-alive like any: one is enough,
// however long the peer is stopped.
func (l *link) doubt(c *conn) {
	limit := l.rank.cfg.Unreachable
	silent, began := l.suspicious(), time.Now()
	for c.silentFor(l.suspicious()) {
		probe, err := l.open()
		took := time.Since(began) // with the pause before: without a route it fails at once
		began = began.Add(took)
		switch {
		case err == nil:
			silent = l.suspicious()
			l.heed(c, probe)
			began = time.Now()
		case unanswered(err):
			// Not by the clock: this process may have been stopped meanwhile.
			if silent += min(took, limit/5); silent >= limit*9/10 {
				l.giveUp(c, l.dead(unreachable(limit)))
				return
			}
		case errors.Is(err, syscall.ECONNREFUSED):
			c.Close() // it will not be made again
			return
		}
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(limit / 50):
		}
	}
}

// heed waits while the peer's kernel acknowledges the probe and not c.
func (l *link) heed(c, probe *conn) {
	ended := make(chan struct{})
	go func() { // the peer has closed it: then it runs
		_, _ = probe.Read(make([]byte, 1))
		close(ended)
	}()
	defer func() { probe.Close(); <-ended }()
	tick := time.NewTicker(l.rank.cfg.Unreachable / 20)
	defer tick.Stop()
	for c.silentFor(l.suspicious()) && !probe.silentFor(l.suspicious()) {
		select {
		case <-ended:
			return
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
