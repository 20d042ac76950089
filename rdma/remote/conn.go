package remote

import (
	"sync"
	"time"

	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/wire"
)

// conn is a connection, and how long its other end's kernel has been silent.
type conn struct {
	wire.Conn
	mu    sync.Mutex
	acked uint64    // by the peer's kernel, at the last look
	stuck time.Time // since when it has acknowledged nothing of what is under way
	born  time.Time
	again bool // the one before it was stuck, too; set before anybody else has it
	past  [moments]counted
	at    int // the latest of them
}

func newConn(c wire.Conn) *conn { return &conn{Conn: c, stuck: time.Now(), born: time.Now()} }

// state is what the kernel knows; not ok once closed. A host that is heard, and
// acknowledges nothing of what is under way to it, is silent as well: the way there
// may be cut, and the way back not.
func (c *conn) state() (s mem.Socket, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok = c.State()
	switch {
	case !ok:
		return s, false
	case s.Ended:
	case !s.Unacked || s.Acked != c.acked:
		c.acked, c.stuck = s.Acked, time.Now()
	default:
		s.Silence = max(s.Silence, time.Since(c.stuck))
	}
	c.count(&s)
	return s, true
}

// lost tells whether nothing of the connection arrives any more, where its host answers.
// A process that takes nothing has a kernel that says so, more and more seldom.
func (c *conn) lost(after time.Duration) bool {
	s, ok := c.state()
	return ok && !s.Ended && s.Silence >= after && (s.Unacked || s.Asked > 1) && !c.hole(after)
}

// hole tells whether large packets are lost on a way on which small ones arrive: over
// this connection, which is young, the handshake came through, and a large packet did
// not, as over the one before.
func (c *conn) hole(after time.Duration) bool {
	s, ok := c.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	return ok && c.again && s.Unacked && s.Queued >= s.Segment && s.Resent > 0 && s.Silence >= after && c.stuck.Sub(c.born) < after
}

func (c *conn) silentFor(d time.Duration) bool {
	s, ok := c.state()
	return ok && s.Silence >= d
}

// counted is what a connection had carried at one moment.
type counted struct {
	at                     time.Time
	acked, resent, arrived uint64
}

// A connection keeps what it had carried at the last few moments, so that a wait that
// has become long can say what happened meanwhile.
const (
	moments      = 10
	momentsApart = time.Second
)

// count keeps s as one of the last moments; c.mu is held.
func (c *conn) count(s *mem.Socket) {
	if last := c.past[c.at]; time.Since(last.at) >= momentsApart {
		c.at = (c.at + 1) % moments
		_, received := c.Carried()
		c.past[c.at] = counted{time.Now(), s.Acked, s.Resent, received}
	}
}

// Connection implements rdma.Connected.
func (t *Transport) Connection(peer int) (found rdma.Connection) {
	if !t.Reaches(peer) {
		return found
	}
	c := t.links[peer].current()
	if c == nil {
		return found
	}
	s, ok := c.state()
	if !ok || s.Ended {
		return found
	}
	large := c.hole(t.links[peer].suspicious())
	c.mu.Lock()
	defer c.mu.Unlock()
	found = rdma.Connection{Address: c.Address(), Queued: s.Queued, Ahead: s.Ahead, Full: s.Full && !s.Unacked, Large: large}
	first := c.past[(c.at+1)%moments]
	if first.at.IsZero() {
		first = c.past[1] // it is younger than that
	}
	if !first.at.IsZero() {
		found.Over = time.Since(first.at)
		found.Acked, found.Resent = s.Acked-first.acked, s.Resent-first.resent
		_, found.Heard = c.Carried()
		found.Heard -= first.arrived
	}
	return found
}
