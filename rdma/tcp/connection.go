package tcp

import (
	"time"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

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
		c.past[c.at] = counted{time.Now(), s.Acked, s.Resent, c.raw.received.Load()}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	found = rdma.Connection{Address: c.RemoteAddr().String(), Queued: s.Queued, Full: s.Full && !s.Unacked}
	first := c.past[(c.at+1)%moments]
	if first.at.IsZero() {
		first = c.past[1] // it is younger than that
	}
	if !first.at.IsZero() {
		found.Over = time.Since(first.at)
		found.Acked, found.Resent = s.Acked-first.acked, s.Resent-first.resent
		found.Heard = c.raw.received.Load() - first.arrived
	}
	// A host that answers nothing at all is given up by then.
	found.Large = s.Unacked && s.Queued >= s.Segment && s.Resent > 0 && time.Since(c.stuck) > t.cfg.Unreachable+time.Second
	return found
}
