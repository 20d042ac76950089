package remote

import (
	"errors"
	"syscall"
	"time"

	"malt/rdma/internal/dial"
	"malt/rdma/internal/mem"
)

// Whether a peer's host is there is the kernels' to say, not the processes':
// one that is stopped answers nothing, and is alive. An idle connection is asked
// once a second by keep-alive, and one with data on its way is acknowledged. But
// a receiver that is stopped for long is asked more and more seldom, and after
// an outage the kernel waits longer than it lasted. So when a connection has
// been silent for a while the peer is dialled: whose kernel acknowledges what is said
// then, even in a process that is stopped, is there. That it accepts is no sign: a
// firewall may let nothing else pass. Where the kernel answers, and nothing of the
// connection arrives, a firewall or a NAT may have forgotten it, and it is made again.
//
// Silence is counted from when the host was last heard, whatever becomes of the
// connection meanwhile. It is not taken from the clock: this process may have been
// stopped, or the machine asleep.

// watch looks after all links.
func (r *rank) watch() {
	tick := time.NewTicker(r.cfg.look())
	defer tick.Stop()
	for at := time.Now(); ; {
		select {
		case <-r.unwatch:
			return
		case <-tick.C:
		}
		passed := time.Since(at)
		at = at.Add(passed)
		if r.survivors() != nil && !r.doubting.Load() {
			r.beginDoubting()
			continue
		}
		for _, l := range r.peers {
			l.look(passed)
			l.tend()
		}
	}
}

// look is watch's, some time after the last.
func (l *link) look(passed time.Duration) {
	r, c := l.rank, l.current()
	var s mem.Socket
	ok := false
	if c != nil {
		s, ok = c.state()
		ok = ok && !s.Ended
	}
	if ok && s.Silence < l.wary() {
		l.note(c, s.Silence)
		return
	}
	probe := ok && l.probing.CompareAndSwap(false, true)
	switch {
	case r.doubting.Load():
		l.count(c, passed)
	case probe:
		// Of one that is silent for much longer nobody has looked when that began.
		l.note(c, min(s.Silence, l.suspicious()+r.cfg.Unreachable/10))
	}
	if probe {
		r.watching.Go(func() {
			defer l.probing.Store(false)
			l.doubt(c)
		})
	}
}

// suspicious is the silence from which on a peer is dialled: one that the kernel
// does not ask a second time is no sign.
func (l *link) suspicious() time.Duration {
	return max(l.rank.cfg.Unreachable*2/5, 1200*time.Millisecond)
}

// wary is the silence from which on somebody dials: less from Survive on, since something
// is under way over every connection.
func (l *link) wary() time.Duration {
	if l.rank.doubting.Load() {
		return max(l.rank.cfg.doubt/2, 2*beatEvery)
	}
	return l.suspicious()
}

// note sets for how long nothing has been heard of the host, if over is the
// connection; nil: there is none.
func (l *link) note(over *conn, silence time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current() == over {
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
	if l.current() != over {
		return false
	}
	if dial.NoWay(how) != "" {
		l.noWay = how
	}
	if l.rank.survivors() != nil {
		return false // look counts
	}
	l.add(took, given+time.Duration(len(l.addresses()))*dial.Apart+limit/20)
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
	if l.rank.survivors() != nil {
		return limit / 5
	}
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

// doubt dials until c is heard of again, is lost, or the link is given up. A probe
// that is answered is kept, and asked by keep-alive like any: one is enough,
// however long the peer is stopped.
func (l *link) doubt(c *conn) {
	began := time.Now()
	for c.silentFor(l.wary()) {
		given := l.patience()
		probe, err := l.knock(given)
		took := time.Since(began) // with the pause before: without a route it fails at once
		began = began.Add(took)
		switch {
		case err == nil:
			l.note(c, 0)
			if l.heed(c, probe) {
				l.note(c, l.wary())
			} else if c.lost(l.suspicious()) {
				c.Reset() // it will be made again
				return
			}
			began = time.Now()
		case dial.Unanswered(err):
			if l.unheard(c, err, given, took) {
				why := l.unreachable()
				l.rank.spread(l.peer, why)
				l.condemn(why, l.rank.cfg.Unreachable/20) // what this rank says may arrive
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

// knock dials the peer, and waits until its kernel has what is said to it.
func (l *link) knock(given time.Duration) (*conn, error) {
	until := time.Now().Add(given)
	c, err := l.open(given)
	if err != nil {
		return nil, err
	}
	if least := time.Now().Add(l.rank.cfg.silence() / 40); until.Before(least) {
		until = least
	}
	c.Knock()
	for pause := time.Millisecond; ; pause *= 2 {
		switch s, ok := c.state(); {
		case ok && !s.Unacked:
			return c, nil
		case !ok || l.ctx.Err() != nil || !time.Now().Before(until):
			c.Close()
			return nil, unreachableError{}
		}
		l.sleep(min(pause, time.Until(until)))
	}
}

// heed waits while the peer's kernel acknowledges the probe and not c, unless that is
// lost. It tells whether the probe has fallen silent, too: from Survive on the kernel is
// asked as often as over c.
func (l *link) heed(c, probe *conn) (silent bool) {
	ended := make(chan struct{})
	go func() { // the peer has closed it: then it runs
		_, _ = probe.Read(make([]byte, 1))
		close(ended)
	}()
	defer func() { probe.Close(); <-ended }()
	period, survives := l.rank.cfg.Unreachable/20, l.rank.doubting.Load()
	if survives {
		period = beatEvery
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for c.silentFor(l.wary()) && !c.lost(l.suspicious()) {
		if probe.silentFor(l.wary()) {
			return true
		}
		if survives {
			l.note(c, 0)
			probe.Knock()
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

// open dials the peer, in vain perhaps: again and again once it has been reached before.
func (l *link) open(given time.Duration) (*conn, error) {
	apart := given
	if !l.is(opening) {
		apart = l.rank.cfg.Unreachable / 20
	}
	c, err := l.rank.wire.Dial(l.ctx, l.peer, given, apart)
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// addresses are where the peer may be.
func (l *link) addresses() []string { return l.rank.wire.Addresses(l.peer) }
