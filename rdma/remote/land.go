package remote

import "time"

// land takes in what comes until the connection ends; errPeerLeft and a
// *rdma.PeerError are the peer's own last word. Every length and number is
// checked before a byte is written, and an update is published when all of it
// is there. Whoever looks for something may take in what has come (inlineProgress), unless
// the connection is encrypted; one does at a time.
func (s *session) land() error {
	in := s.in
	defer func() {
		in.over = true
		s.link.dropUpdates()
		in.turn.Unlock()
	}()
	if !s.conn.Inline() {
		in.turn.Lock()
		for {
			if err := s.landNext(); err != nil {
				return err
			}
		}
	}
	// It keeps the turn where it returns true.
	arrived := func() bool {
		in.turn.Lock()
		// Until there is nothing: what ends the connection may be behind the rest.
		for in.failed == nil && in.to == in.from && in.readSome() {
			_ = s.landWhole()
		}
		if in.failed != nil || in.to > in.from {
			return true
		}
		in.turn.Unlock()
		s.drain()
		return false
	}
	for {
		err := s.conn.Await(arrived)
		if err != nil {
			in.turn.Lock()
		}
		if in.behind && in.failed == nil {
			in.behind, err = false, nil
			_ = s.conn.SetReadDeadline(time.Time{})
			if s.link.parting.Load() { // after which part sets one, too
				_ = s.conn.SetReadDeadline(time.Now().Add(abortPatience))
			}
		}
		switch {
		case in.failed != nil:
			return in.failed
		case err != nil:
			return err
		}
		if err := s.landNext(); err != nil {
			return err
		}
		in.turn.Unlock()
		s.drain()
	}
}

// landNext waits for a frame and lands it.
func (s *session) landNext() error {
	b, err := s.in.next(frameBytes)
	if err != nil {
		return err
	}
	h, err := decodeHeader(b)
	if err == nil {
		err = s.landFrame(h)
	}
	if err == nil {
		s.landed.Add(1)
	}
	return err
}

// landWhole lands the frames that are in the buffer from end to end.
func (s *session) landWhole() error {
	in := s.in
	for in.failed == nil && in.to-in.from >= frameBytes {
		h, err := decodeHeader(in.buf[in.from:])
		if err == nil && in.to-in.from < frameBytes+int(h.length) {
			break
		}
		if in.behind = err == nil && !s.arrived(h); in.behind {
			break
		}
		in.failed = s.landNext()
	}
	return in.failed
}

// arrived tells whether the payload of the frame with header h, which is in the buffer, is there, and what it is behind.
func (s *session) arrived(h header) bool {
	if h.kind == after {
		return s.after(number(s.in.buf[s.in.from+frameBytes:], 0))
	}
	if h.kind != data || h.flags&flagPlaced == 0 || h.length != preamble+inRoom || s.link.rank.card == nil {
		return true
	}
	return s.link.rank.card.arrived(uint32(number(s.in.buf[s.in.from+frameBytes:], preamble/8)))
}

// inlineProgress lands what has come, as far as that goes without waiting, for somebody who
// looks for it: the goroutine that is woken for it would take longer.
func (l *link) inlineProgress() (landed bool) {
	s := l.session.Load()
	if s == nil || !s.conn.Inline() {
		return false
	}
	before := s.landed.Load()
	if r := s.ring.Load(); r != nil && r.in.next.Load() > 0 {
		l.rank.card.poll()
	}
	if !s.in.turn.TryLock() {
		return s.landed.Load() > before
	}
	in := s.in
	defer s.drain()
	defer in.turn.Unlock()
	if in.over || in.failed != nil || in.to > in.from || !in.readSome() {
		return s.landed.Load() > before
	}
	if s.landWhole() != nil || in.behind {
		_ = in.c.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine
	}
	return true
}

func (s *session) landFrame(h header) error {
	l, in := s.link, s.in
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
	if h.kind.votes() {
		return l.landVote(h, b)
	}
	switch h.kind {
	case announce:
		return l.landAnnounce(h, b)
	case subscribe, ack, done, grants:
		return s.landForRelay(h, b)
	case clock, closed, skip:
		return l.landForReplica(h, b)
	case makeWords, dropWords, setWords, ask:
		return l.landWords(h, b)
	case doneWords, heard:
		return l.landForWords(h, b)
	case resume:
		s.resumed.Store(true)
		l.kick()
		return nil
	case dead:
		return l.landDead(h, b)
	case beat:
		switch h.arg {
		case asks:
			s.asking.Store(true)
			l.kick()
		case answers:
			s.asked.Store(false)
		}
		return nil
	case greets:
		return s.landGreeting(h, b)
	case after:
		return s.landAfter(number(b, 0))
	case credit:
		return s.landCredit(number(b, 0))
	case left:
		l.farewell.Store(h.arg)
		return errPeerLeft
	default: // aborted
		return l.landAborted(h, b)
	}
}
