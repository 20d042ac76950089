package remote

// A small update is written by whoever commits it, and a release by whoever
// releases, if nothing else is being sent and the connection takes it at once:
// waking the sending goroutine for it costs as much as the way to the peer. What
// cannot be done without waiting is left to that goroutine.

// ring is kick for callers that hold no lock but their own box's, and can do the
// round themselves.
func (l *link) ring() {
	s := l.session.Load()
	if s == nil || !s.turn.TryLock() {
		l.kick()
		return
	}
	l.dirty.Store(false) // before the look
	done := s.eagerSend()
	s.turn.Unlock()
	if !done {
		l.kick()
	}
}

// eagerSend does a round that never waits; false: there is more to do. s.turn is held.
func (s *session) eagerSend() (done bool) {
	l := s.link
	if s.ended || !s.told || len(s.out) > 0 || !s.resumed.Load() || l.leaving.Load() || l.aborting.Load() != nil || l.parting.Load() || !s.conn.Inline() {
		return false
	}
	s.gathering = true
	defer func() { s.gathering = false }()
	if s.control() != nil {
		return false
	}
	s.survey()
	due := uint64(0)
	for _, x := range s.relays {
		if !x.subscribed || x.closed != open {
			continue
		}
		if n := x.progress.Head - min(x.box.Sent(), x.progress.Head); x.due || x.queue() && n > 0 {
			if !s.fits(x) {
				return false
			}
			due += n * uint64(preamble+x.pub.spec.Bytes)
		}
	}
	if due > flushAt {
		return false
	}
	if whole, err := s.bring(); !whole || err != nil {
		return false
	}
	if s.sendClocks(); len(s.out) == 0 {
		return true
	}
	n := s.conn.TryWrite(s.out, nil)
	s.out = append(s.out[:0], s.out[n:]...)
	return len(s.out) == 0
}
