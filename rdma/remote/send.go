package remote

import (
	"errors"
	"slices"
)

const (
	// What is copied together before it is written, so that small frames share a
	// write; longer payload goes out from its slot.
	copied  = 8 << 10
	flushAt = 32 << 10
)

// What a relay has told its reader of the end of the box.
const (
	open      = iota
	withdrawn // it was closed before the reader subscribed
	final     // it was closed, and everything was sent
)

var errStopped = errors.New("the connection has ended")

// A session sends in rounds:
//
//	look   words first, then how far queues are, then newest updates
//	send   every newest update that was seen, then the queues' up to where
//	       they were, in frames of at most a chunk in turns; small newest
//	       updates join at any time
//	tell   clocks, ends of boxes, words
//
// So what is in a queue, the clock of a box without an update, and words are
// seen by a peer after everything that was published to it before them, as
// within one machine; newest updates of different boxes overtake each other.
// Acks and announcements go between any two frames. Over a new connection the
// first round waits until the peer has said what it has, since before that no
// update can be sent.
//
// Where an update waits for a room, or for the end of a write, so does the round: what may
// overtake updates goes on, and the rest is told when the round is over.
//
// send returns why it has ended: errPosted behind the last frame, errStopped.
func (s *session) send() error {
	defer func() {
		s.ended = true
		for _, x := range s.relays {
			x.finish()
		}
		s.turn.Unlock()
	}()
	for {
		s.turn.Lock()
		for waits := true; waits; {
			var err error
			if waits, err = s.round(); err != nil {
				return err
			}
			if waits && !s.sleep() {
				return errStopped
			}
		}
		s.turn.Unlock()
		if !s.sleep() {
			s.turn.Lock()
			return errStopped
		}
	}
}

// sleep returns once there may be something to send; false: nothing more is.
func (s *session) sleep() bool {
	for !s.link.dirty.Swap(false) {
		s.idle.Store(!s.waiting)
		select {
		case <-s.link.wake:
		case <-s.stop:
			s.idle.Store(false)
			return false
		}
		s.idle.Store(false)
	}
	return true
}

// round is one, or goes on with one that waits.
func (s *session) round() (waits bool, err error) {
	l := s.link
	leaving, why, parting := l.leaving.Load(), l.aborting.Load(), l.parting.Load() // before the look
	resumed := s.resumed.Load()
	if err := s.control(); err != nil {
		return false, err
	}
	if !s.told {
		s.told = true
		s.greet()
		s.frame(resume, 0, 0, 0)
		if err := s.flush(); err != nil { // in packets of its own: large ones may get lost
			return false, err
		}
	}
	if resumed && !parting {
		on := s.waiting
		if !on {
			s.survey()
		}
		whole, err := s.bring()
		if err != nil {
			return false, err
		}
		switch s.waiting = !whole; {
		case whole:
			s.sendClocks()
			if on { // what has come since the look is of the next, and so is the end
				l.dirty.Store(true)
				return false, s.flush()
			}
		case why == nil:
			return true, s.flush()
		}
	} else {
		leaving = false
	}
	switch {
	case why != nil:
		s.fence()
		s.out = appendAborted(s.out, why)
	case parting:
	case leaving && s.allClosed():
		farewell := uint64(0)
		if m := l.rank.survivors(); m != nil {
			farewell = m.Farewell()
		}
		s.frame(left, 0, 0, uint32(farewell))
	default:
		return false, s.flush()
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	_ = s.conn.CloseWrite()
	select {
	case l.spoken <- struct{}{}:
	default:
	}
	return false, errPosted
}

// frame adds one whose body is numbers.
func (s *session) frame(k kind, flags uint8, id, arg uint32, body ...uint64) {
	if k == clock || k == closed || k == setWords {
		s.fence()
	}
	s.out = appendFrame(s.out, k, flags, id, arg, body...)
	s.posted.Add(1)
}

func (s *session) flush() error {
	if len(s.out) == 0 || s.gathering {
		return nil
	}
	err := s.conn.Write(s.out, nil)
	s.out = s.out[:0]
	return err
}

// remove takes what is over out of the link's tables.
func (s *session) remove(from func(l *link)) {
	l := s.link
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	from(l)
	l.version.Add(1)
}

// control sends whatever may overtake updates: votes, news of boxes and words, and
// acks.
func (s *session) control() error {
	s.sendVotes()
	if err := s.controlPair(); err != nil {
		return err
	}
	s.refresh()
	for _, p := range s.replicas {
		switch {
		case p.over.Load():
			if !p.told {
				p.told = true
				if p.ready.Load() {
					p.revoke(p.rooms.void(nil)) // the owner writes there no more
				}
				s.frame(done, 0, p.id, 0)
				s.remove(func(l *link) { l.dropReplica(p.replica) })
			}
		case !p.ready.Load():
		default:
			if a := p.box.Acked(); !p.subscribed {
				p.subscribed, p.acked = true, a
				s.frame(subscribe, 0, p.id, 0, p.box.Landed(), a)
			} else if a != p.acked {
				p.acked = a
				s.frame(ack, 0, p.id, 0, a)
			}
			s.offer(p) // at once: nothing else may wake this goroutine
		}
	}
	for _, x := range s.relays {
		if x.over.Load() {
			s.remove(func(l *link) { l.relays = without(l.relays, x.relay) })
			x.finish()
			x.end()
			continue
		}
		if err := s.controlRelay(x); err != nil {
			return err
		}
	}
	for _, w := range s.words {
		s.controlWords(w)
	}
	s.obituaries()
	for _, p := range s.remotes {
		if a := p.asked.Load(); a != p.answered {
			p.answered = a
			s.frame(heard, 0, p.id, 0, a)
		}
		if p.over.Load() && !p.told {
			p.told = true
			s.frame(doneWords, 0, p.id, 0)
			s.remove(func(l *link) { l.dropRemote(p.remoteWords) })
		}
	}
	if len(s.out) >= flushAt {
		return s.flush()
	}
	return nil
}

func (s *session) controlRelay(x *relaySession) error {
	over := x.left()
	if !x.announced {
		x.announced = true
		if !over {
			s.out = appendAnnounce(s.out, x.pub.id, x.pub.name, x.pub.spec, x.pub.placed())
			s.posted.Add(1)
		}
	}
	o := x.offered.Swap(nil) // first: what is wanted comes before it
	if w := x.wanted.Swap(nil); w != nil && w.over == s {
		if err := x.box.Resume(w.seq); err != nil {
			return err
		}
		x.box.Ack(w.ack)
		x.subscribed, x.closed = true, open
		x.clock, x.published = 0, 0
		x.placing = placing{last: w.seq}
		s.frame(clock, 0, x.pub.id, 0, 0, 0) // confirms
	}
	if o != nil && o.over == s && x.pub.placed() {
		if err := x.placing.grant(o.room); err != nil {
			return err
		}
	}
	s.answer(x)
	if over && !x.subscribed && x.closed == open {
		x.closed = withdrawn
		s.frame(closed, 0, x.pub.id, withdrawn, 0, 0)
	}
	return nil
}

// answer tells the reader up to where it has skipped, also while a write is under way (doc.go).
func (s *session) answer(x *relaySession) {
	if a := x.answer.Load(); a.demand != x.answered && x.subscribed {
		x.answered = a.demand
		s.frame(skip, 0, x.pub.id, 0, a.demand, a.lost, a.head)
	}
}

// allClosed tells whether the reader has been told of the end of every box.
func (s *session) allClosed() bool {
	s.refresh()
	return !slices.ContainsFunc(s.relays, func(x *relaySession) bool { return x.closed == open })
}
