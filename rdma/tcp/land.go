package tcp

import (
	"errors"
	"math"
	"time"

	"malt/rdma"
)

// land takes in what comes over c until that ends; errPeerLeft and a
// *rdma.PeerError are the peer's own last word. Every length and number is
// checked before a byte is written, and an update is published when all of it
// is there. Whoever looks for something may take in what has come (glance), unless
// c is encrypted; one does at a time.
func (l *link) land(c *conn) error {
	in := newInput(c)
	if c.encrypted() {
		for {
			if err := l.landNext(in); err != nil {
				return err
			}
		}
	}
	l.input.Store(in)
	defer func() {
		in.over = true
		in.turn.Unlock()
		l.input.Store(nil)
	}()
	// It keeps the turn where it returns true.
	arrived := func(fd uintptr) bool {
		in.turn.Lock()
		// Until there is nothing: what ends the connection may be behind the rest.
		for in.failed == nil && in.to == in.from && in.take(fd) {
			_ = l.landWhole(in)
		}
		if in.failed != nil || in.to > in.from {
			return true
		}
		in.turn.Unlock()
		return false
	}
	for {
		err := c.own.Read(arrived)
		if err != nil {
			in.turn.Lock()
		}
		switch {
		case in.failed != nil:
			return in.failed
		case err != nil:
			return err
		}
		if err := l.landNext(in); err != nil {
			return err
		}
		in.turn.Unlock()
	}
}

// landNext waits for a frame and lands it.
func (l *link) landNext(in *input) error {
	b, err := in.next(frameBytes)
	if err != nil {
		return err
	}
	h, err := decodeHeader(b)
	if err == nil {
		err = l.frame(in, h)
	}
	if err == nil {
		l.landed.Add(1)
	}
	return err
}

// landWhole lands the frames that are in the buffer from end to end.
func (l *link) landWhole(in *input) error {
	for in.failed == nil && in.to-in.from >= frameBytes {
		h, err := decodeHeader(in.buf[in.from:])
		if err == nil && in.to-in.from < frameBytes+int(h.length) {
			break
		}
		in.failed = l.landNext(in)
	}
	return in.failed
}

// glance lands what has come, as far as that goes without waiting, for somebody who
// looks for it: the goroutine that is woken for it would take longer.
func (l *link) glance() (landed bool) {
	in := l.input.Load()
	if in == nil || !in.turn.TryLock() {
		return false
	}
	defer in.turn.Unlock()
	if in.over || in.failed != nil || in.to > in.from || !in.c.look(in) {
		return false
	}
	if l.landWhole(in) != nil {
		_ = in.c.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine
	}
	return true
}

func (l *link) frame(in *input, h header) error {
	switch h.kind {
	case data:
		return l.landData(in, h)
	case more:
		return l.landMore(in, h)
	}
	b, err := in.next(int(h.length))
	if err != nil {
		return err
	}
	switch h.kind {
	case announce:
		return l.landAnnounce(h, b)
	case subscribe, ack, done:
		return l.landForRelay(h, b)
	case clock, closed, skip:
		return l.landForReplica(h, b)
	case makeWords, dropWords, setWords, ask:
		return l.landWords(h, b)
	case doneWords, heard:
		return l.landForWords(h, b)
	case resume:
		l.resumed.Store(true)
		l.kick()
		return nil
	case dead:
		return l.landDead(h, b)
	case left:
		return errPeerLeft
	default: // aborted
		why := &rdma.PeerError{Rank: int(h.id & math.MaxInt32), Kind: rdma.Death(h.arg), Err: errors.New(string(b))}
		return why.Heard(l.peer, l.rank.cfg.Rank, l.rank.cfg.Size)
	}
}
