package tcp

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
// answers at all, its host is away, and after Config.Unreachable its rank dead.
// Where somebody accepts and says nothing, it is stopped or slow, and waited
// for.
const (
	shortest = time.Millisecond
	longest  = 50 * time.Millisecond
	// Who does not dial asks whether the peer is there, and where it is not gives
	// it that long to come by itself: a firewall can refuse in its place.
	grace = 300 * time.Millisecond
)

// connect makes the next connection; first, there was none before, and unless all
// are known to listen there is no telling a peer that is gone from one that has
// yet to come.
func (l *link) connect(first bool) (*conn, error) {
	since := time.Now()
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
				err = l.probe(given)
			}
			if tried && first && err == nil { // it lets nobody in yet
				ask = time.Since(since) * 3 / 2
			}
		}
		switch {
		case l.ctx.Err() != nil:
			if c != nil {
				c.Close()
			}
			return nil, errClosing
		case c != nil:
			return c, nil
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
		if first {
			return err
		}
		return l.dead(rdma.Ended, fmt.Errorf("it does not take this rank back: %w", err))
	case first && !l.rank.cfg.Listening:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return l.gone()
	case errors.Is(err, handshake.ErrStranger):
		if first {
			return nil // one of its addresses is somebody else's, too
		}
		return l.gone()
	case unanswered(err) && l.unheard(nil, err, given, took):
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
		return "its process has ended: nobody listens any more at " + at
	}
	return fmt.Sprintf("nobody listens any more at %s: its process has ended, or a firewall resets connections to it", at)
}

func gone(err error) bool { return errors.As(err, new(*goneError)) }

func (l *link) gone() error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	return l.dead(rdma.Ended, &goneError{closed, l.addresses()})
}

// unreachable is the death of a peer whose host has been silent for too long.
func (l *link) unreachable() error {
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
	if c.Conn, err = l.rank.self.Secure(c.raw, l.rank.cfg.Encrypt); err != nil {
		c.Close()
		return nil, err
	}
	l.note(nil, 0)
	away := l.guard(c)
	incarnation, err := l.rank.self.Dial(c.Conn, l.peer)
	if away() {
		l.note(nil, l.rank.cfg.silence())
		err = unreachableError{}
	}
	if err == nil && l.permit(incarnation) != handshake.Accepted {
		err = &handshake.Refusal{Verdict: handshake.OtherProcess}
	}
	if err != nil {
		c.Close()
		l.putLast(c.address)
		return nil, fmt.Errorf("%s: %w", c.RemoteAddr(), err)
	}
	return c, nil
}

// unreachableError is a timeout that the guard of a handshake found.
type unreachableError struct{}

func (unreachableError) Error() string   { return "its host does not answer" }
func (unreachableError) Timeout() bool   { return true }
func (unreachableError) Temporary() bool { return true }

// guard closes c when the host at its other end falls silent; a process that is
// stopped does not answer for as long as it likes. The result ends the guard and
// tells whether it has closed c.
func (l *link) guard(c *conn) (away func() bool) {
	stop, silent := make(chan struct{}), make(chan bool, 1)
	limit := l.rank.cfg.silence()
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
			if s, ok := c.state(); ok && s.Silence > limit {
				c.Close()
				silent <- true
				return
			}
		}
	}()
	return func() bool { close(stop); return <-silent }
}

// probe finds out whether somebody listens where the peer did, and once this rank
// has said that it leaves, whether the peer knows: then there will be no
// connection any more.
func (l *link) probe(given time.Duration) error {
	if l.said {
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
	if unanswered(err) {
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

// permit tells whether a process that has proved the token is the peer: the same
// for ever.
func (l *link) permit(incarnation uint64) handshake.Verdict {
	if l.rank.state(l.peer) != nil {
		return handshake.OtherProcess
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.incarnation == 0 {
		l.incarnation = incarnation
	}
	if l.incarnation != incarnation {
		return handshake.OtherProcess
	}
	return handshake.Accepted
}

// offer hands over a connection that the peer made. That it made one means that
// it has given up the last.
func (l *link) offer(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		c.Close()
		return
	}
	if l.incoming != nil {
		l.incoming.Close()
	}
	l.incoming = c
	if l.conn != nil {
		l.conn.Close()
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}
