package tcp

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"malt/rdma/internal/dial"
)

// Whether a peer's host is there is the kernels' to say, not the processes':
// one that is stopped answers nothing, and is alive. An idle connection is asked
// once a second by keep-alive, and one with data on its way is acknowledged. But
// a receiver that is stopped for long is asked more and more seldom, and after
// an outage the kernel waits longer than it lasted. So when a connection has
// been silent for a while the peer is dialled: who accepts, even in a process
// that is stopped, is there.
//
// Silence is counted from when the host was last heard, whatever becomes of the
// connection meanwhile. It is not taken from the clock: this process may have been
// stopped, or the machine asleep.

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
			c := l.current()
			if c == nil {
				continue
			}
			s, ok := c.state()
			switch {
			case !ok || s.Ended:
			case s.Silence < l.suspicious():
				l.note(c, s.Silence)
			case l.probing.CompareAndSwap(false, true):
				// Of one that is silent for much longer nobody has looked when that began.
				l.note(c, min(s.Silence, l.suspicious()+r.cfg.Unreachable/10))
				r.watching.Go(func() {
					defer l.probing.Store(false)
					l.doubt(c)
				})
			}
		}
	}
}

// suspicious is the silence from which on a peer is dialled: one that the kernel
// does not ask a second time is no sign.
func (l *link) suspicious() time.Duration {
	return max(l.rank.cfg.Unreachable*2/5, 1200*time.Millisecond)
}

func (c *conn) silentFor(d time.Duration) bool {
	s, ok := c.state()
	return ok && s.Silence >= d
}

// note sets for how long nothing has been heard of the host, if over is the
// connection; nil: there is none.
func (l *link) note(over *conn, silence time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == over {
		l.silence, l.counted = silence, time.Now()
		if silence < l.suspicious() {
			l.noWay = nil
		}
	}
}

// unheard counts an attempt that nobody has answered, how it failed, with the pause
// before it, while over was the connection. given is what each address had. It tells
// whether nothing has been heard for long enough.
func (l *link) unheard(over *conn, how error, given, took time.Duration) bool {
	limit := l.rank.cfg.silence()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != over {
		return false
	}
	if dial.NoWay(how) != "" {
		l.noWay = how
	}
	l.add(took, given+time.Duration(len(l.to))*dial.Apart+limit/20)
	return l.silence >= limit
}

// add counts what has passed since the last look, unless it is more than it can be:
// then this process was stopped, and nobody took what came. l.mu is held.
func (l *link) add(passed, most time.Duration) {
	if l.counted = time.Now(); passed <= most {
		l.silence += passed
	}
}

// patience is how long an attempt to reach the host at an address may take: until
// it counts as unreachable, and no longer than a way around the world takes.
func (l *link) patience() time.Duration {
	limit := l.rank.cfg.silence()
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(min(limit/5, limit-l.silence), time.Millisecond)
}

// fromPeer tells whether a connection has ended, or has not come about, because its
// other end said so.
func fromPeer(err error) bool {
	// What this kernel ended it for it says once; after that it speaks of an end.
	if errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ETIMEDOUT) {
		return false
	}
	return ended(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}

// unanswered tells whether err says that nothing came back from the host.
func unanswered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || dial.NoWay(err) != ""
}

// doubt dials until c is heard of again, or the link is given up. A connection
// that is accepted is kept, and asked by keep-alive like any: one is enough,
// however long the peer is stopped.
func (l *link) doubt(c *conn) {
	began := time.Now()
	for c.silentFor(l.suspicious()) {
		given := l.patience()
		probe, err := l.open(given)
		took := time.Since(began) // with the pause before: without a route it fails at once
		began = began.Add(took)
		switch {
		case err == nil:
			l.note(c, 0)
			if l.heed(c, probe) {
				l.note(c, l.suspicious())
			}
			began = time.Now()
		case unanswered(err):
			if l.unheard(c, err, given, took) {
				l.giveUp(c, l.unreachable())
				return
			}
		case errors.Is(err, syscall.ECONNREFUSED):
			l.note(c, 0)
			c.Close() // it will not be made again
			return
		}
		if l.sleep(l.rank.cfg.Unreachable / 50); l.ctx.Err() != nil {
			return
		}
	}
}

// heed waits while the peer's kernel acknowledges the probe and not c. It tells
// whether that has fallen silent, too.
func (l *link) heed(c, probe *conn) (silent bool) {
	ended := make(chan struct{})
	go func() { // the peer has closed it: then it runs
		_, _ = probe.Read(make([]byte, 1))
		close(ended)
	}()
	defer func() { probe.Close(); <-ended }()
	tick := time.NewTicker(l.rank.cfg.Unreachable / 20)
	defer tick.Stop()
	for c.silentFor(l.suspicious()) {
		if probe.silentFor(l.suspicious()) {
			return true
		}
		select {
		case <-ended:
			return false
		case <-l.ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return false
}

// open dials the peer's addresses side by side.
func (l *link) open(given time.Duration) (*conn, error) {
	addresses := l.addresses()
	c, errs := dial.First(l.ctx, len(addresses), dial.Apart, func(ctx context.Context, i int) (*conn, error) {
		return l.openAt(ctx, addresses[i], given)
	})
	if errs == nil {
		return c, nil
	}
	return nil, mostTelling(errs)
}

// openAt dials an address, again and again once it has been reached before: of what
// a network has lost meanwhile the kernel sends the first thing again after a
// second only, by when the host may count as unreachable.
func (l *link) openAt(ctx context.Context, address string, given time.Duration) (*conn, error) {
	apart, attempts := l.rank.cfg.Unreachable/20, 1
	select {
	case <-l.up:
		attempts = int((given + apart - 1) / apart)
	default:
	}
	ctx, over := context.WithTimeout(ctx, given)
	defer over()
	ctx, answered := context.WithCancelCause(ctx)
	defer answered(nil)
	c, errs := dial.First(ctx, attempts, apart, func(ctx context.Context, _ int) (*conn, error) {
		d := net.Dialer{KeepAlive: -1}
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			if err = dial.Refusal(err, given); !unanswered(err) {
				answered(err) // by the first, if it is not the end of all
			}
			return nil, err
		}
		n, err := newConn(c.(*net.TCPConn), l.rank.cfg.Congestion)
		if err == nil {
			n.address = address
		}
		return n, err
	})
	switch cause := context.Cause(ctx); {
	case errs == nil:
		return c, nil
	case cause != nil && !errors.Is(cause, ctx.Err()):
		return nil, cause
	}
	return nil, errs[0]
}

// mostTelling is the error that says what is known of the peer: a refusal if all
// its addresses refuse, since where one is silent it may be there.
func mostTelling(errs []error) error {
	for _, err := range errs {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	return errs[0]
}
