package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"malt/rdma"
	"malt/rdma/internal/dial"
	"malt/rdma/internal/handshake"
)

// The end with the higher rank dials. A connection that has ended says nothing
// about the peer by itself. It is made again; but where nobody listens any more
// at an address at which the peer did, its process is gone. Where nothing
// answers at all, its host is away, and after Config.Unreachable its rank dead,
// though from Survive on it is dialled until it is heard or left out.
// Where somebody accepts and says nothing, it is stopped or slow, and waited
// for.
const (
	shortest = time.Millisecond
	longest  = 50 * time.Millisecond
	// Who does not dial asks whether the peer is there, and where it is not gives
	// it that long to come by itself: a firewall can refuse in its place.
	grace = 300 * time.Millisecond
)

// connect makes the next connection. If there was none before, and unless all are known
// to listen, there is no telling a peer that is gone from one that has yet to come.
func (l *link) connect() (*session, error) {
	first, since := l.is(opening), time.Now()
	dialled := l.dials()
	unsure := first && !l.rank.cfg.Listening
	enough, ask := grace, time.Duration(0)
	if first && !dialled {
		enough, ask = l.rank.cfg.Unreachable/2, grace // it may be slow to begin
	}
	pause, began := shortest, since
	for {
		var err error
		var c *conn
		tried, given := true, l.patience()
		if dialled {
			c, err = l.dial(given)
		} else if c = l.await(pause); c == nil {
			if tried = !unsure && time.Since(since) >= ask; tried {
				err = l.probe(first, given)
			}
			if tried && first && err == nil { // it lets nobody in yet
				ask = time.Since(since) * 3 / 2
			}
		}
		if c != nil {
			if s := l.newSession(c); s != nil {
				return s, nil
			}
		}
		if l.ctx.Err() != nil {
			return nil, errClosing
		}
		took := time.Since(began) // with the pause before: without a route it fails at once
		began = began.Add(took)
		if tried {
			end := l.judge(err, first, given, took)
			// Once more: it may be on its way here, or just ending.
			if end != nil && (!gone(end) || time.Since(since) >= enough) {
				return nil, end
			}
		}
		if dialled {
			l.sleep(pause)
		}
		pause = min(2*pause, longest)
	}
}

// judge decides what a failed attempt says about the peer; nil: nothing yet.
func (l *link) judge(err error, first bool, given, took time.Duration) error {
	if err != nil {
		l.mu.Lock()
		l.why = err
		l.mu.Unlock()
	}
	var refused *handshake.Refusal
	if err == nil || fromPeer(err) {
		l.note(nil, 0)
	}
	switch {
	case errors.As(err, &refused):
		cut := refused.Verdict == handshake.CountedDead
		if first && !cut {
			return err
		}
		switch m := l.rank.survivors(); {
		case m != nil && refused.Verdict == handshake.Expelled:
			m.Expelled(l.peer)
			return l.dead(rdma.Unreachable, errGoneOn)
		case m != nil && !m.Has(l.peer): // and has found out, before Review
			return l.dead(rdma.Unreachable, errLeftOut)
		case cut:
			return rdma.Apart(l.peer, l.rank.cfg.Rank, fmt.Errorf("rank %d had no answer from this rank for as long as MALT_UNREACHABLE says, and counts it as dead", l.peer))
		}
		return l.dead(rdma.Ended, fmt.Errorf("it does not let this rank reconnect: %w", err))
	case first && !l.rank.cfg.Listening:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return l.gone()
	case errors.Is(err, handshake.ErrStranger):
		if first {
			return nil // one of its addresses is somebody else's, too
		}
		return l.gone()
	case dial.Unanswered(err) && l.unheard(nil, err, given, took):
		return l.unreachable()
	}
	return nil
}

// goneError is why a rank is dead at whose addresses nobody listens any more. A
// firewall that answers in the host's place (REJECT with a TCP reset) cannot be
// told from that, unless the last connection was closed by the peer.
type goneError struct {
	closed bool
	at     []string
}

func (e *goneError) Error() string {
	at := strings.Join(e.at, ", ")
	if e.closed {
		return "its process has ended: nothing listens any more at " + at
	}
	return fmt.Sprintf("nothing listens at %s any more: its process has ended, or a firewall resets connections to it", at)
}

func gone(err error) bool { return errors.As(err, new(*goneError)) }

func (l *link) gone() error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	return l.dead(rdma.Ended, &goneError{closed, l.addresses()})
}

// unreachable is the death of a peer whose host has been silent for too long.
func (l *link) unreachable() *rdma.PeerError {
	l.mu.Lock()
	why := l.noWay
	l.mu.Unlock()
	return l.dead(rdma.Unreachable, dial.Silent(l.rank.cfg.Unreachable, why, l.addresses()...))
}

func (l *link) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// dials tells whether it is this end that dials to connect.
func (l *link) dials() bool { return l.rank.cfg.Rank > l.peer }

// dial makes a connection and shakes hands.
func (l *link) dial(given time.Duration) (*conn, error) {
	c, err := l.open(given)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(l.ctx, func() { c.Close() })()
	away := l.guard(c)
	err = c.Prove(l.permit)
	if away() {
		l.note(nil, l.rank.cfg.silence())
		err = unreachableError{}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", c.Address(), err)
	}
	return c, nil
}

// unreachableError is that the kernel of a host has not acknowledged what was said to it.
type unreachableError struct{}

func (unreachableError) Error() string   { return "its host does not answer" }
func (unreachableError) Timeout() bool   { return true }
func (unreachableError) Temporary() bool { return true }

// guard closes c when the host at its other end falls silent, or has been since before;
// a process that is stopped does not answer for as long as it likes. The result ends the
// guard and tells whether it has closed c. From Survive on what was before does not end an
// attempt, and every sign counts.
func (l *link) guard(c *conn) (away func() bool) {
	stop, silent := make(chan struct{}), make(chan bool, 1)
	limit := l.rank.cfg.silence()
	survives := l.rank.survivors() != nil
	l.mu.Lock()
	before := l.silence
	l.mu.Unlock()
	if survives {
		before = 0
	}
	go func() {
		tick := time.NewTicker(limit / 20)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				silent <- false
				return
			case <-tick.C:
			}
			said, _ := c.Carried()
			switch s, ok := c.state(); {
			case !ok:
			case s.Silence+before > limit:
				c.Close()
				silent <- true
				return
			case (before > 0 || survives && s.Silence < l.suspicious()) && !s.Unacked && said > 0:
				before = 0
				l.note(nil, 0)
			}
		}
	}()
	return func() bool { close(stop); return <-silent }
}

// probe finds out whether somebody listens where the peer did, and once there was a
// connection, whether the peer will make another one: not if it knows that this rank has
// left, or counts it as dead.
func (l *link) probe(first bool, given time.Duration) error {
	if !first {
		_, err := l.dial(given)
		var refused *handshake.Refusal
		if errors.As(err, &refused) && refused.Verdict == handshake.NoSuchRank {
			return nil // it does not, and will dial
		}
		return err
	}
	c, err := l.open(given)
	if err != nil {
		return err
	}
	// A process that is just ending accepts and resets.
	_ = c.SetReadDeadline(time.Now().Add(longest))
	_, err = c.Read(make([]byte, 1))
	c.Close()
	if dial.Unanswered(err) {
		return nil // it waits for what we say
	}
	return err
}

// await waits for a connection that the peer made.
func (l *link) await(pause time.Duration) *conn {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-l.arrived:
	case <-t.C:
	case <-l.ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.incoming
	l.incoming = nil
	return c
}

// permit judges the process of a rank that has proved that it belongs to the job.
func (r *rank) permit(from int, incarnation uint64) handshake.Verdict {
	if from >= len(r.links) || r.links[from] == nil {
		return handshake.NoSuchRank
	}
	if m := r.survivors(); m != nil && !m.Has(from) {
		return handshake.Expelled
	}
	v := r.links[from].permit(incarnation)
	if v == handshake.Accepted && from < r.cfg.Rank {
		return handshake.NoSuchRank // it only asks whether it is known to be gone
	}
	return v
}

// permit tells whether a process is the peer: the same for ever.
func (l *link) permit(incarnation uint64) handshake.Verdict {
	end := l.rank.state(l.peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.incarnation == 0 {
		l.incarnation = incarnation
	}
	switch {
	case l.incarnation == incarnation && end == nil:
		return handshake.Accepted
	case l.incarnation == incarnation && errors.As(end, new(*rdma.PeerError)):
		return handshake.CountedDead
	}
	return handshake.OtherProcess
}

// offer hands over a connection that the peer made. That it made one means that
// it has given up the last, which closes when mu is free, as in stop.
func (l *link) offer(c *conn) {
	l.mu.Lock()
	over := []*conn{c}
	if l.ctx.Err() == nil {
		over = []*conn{l.incoming, l.current()}
		l.incoming = c
		select {
		case l.arrived <- struct{}{}:
		default:
		}
	}
	l.mu.Unlock()
	for _, c := range over {
		if c != nil {
			c.Close()
		}
	}
}
