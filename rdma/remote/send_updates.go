package remote

import (
	"encoding/binary"
	"slices"
)

// survey decides what this round has to bring. The order is that of the promise:
// what is told last is looked at first.
func (s *session) survey() {
	for _, p := range s.replicas {
		p.demand = p.demanded.Load()
	}
	for _, w := range s.words {
		w.survey()
	}
	for _, queue := range []bool{true, false} {
		for _, x := range s.relays {
			if x.subscribed && x.closed == open && x.queue() == queue {
				x.progress = x.box.Progress()
				x.due = !queue && x.box.Sent() < x.progress.Head
			}
		}
	}
}

// fits tells whether the round may send what x has: one that never waits leaves what
// is not copied to the next.
func (s *session) fits(x *relaySession) bool {
	return !s.gathering || x.pub.spec.Bytes <= copied && !x.placing.granted
}

// bring sends it; not whole: the rest has to wait.
func (s *session) bring() (whole bool, err error) {
	for waits := false; !whole && !waits && err == nil; {
		whole, waits, err = s.pass()
	}
	return whole, err
}

// pass sends a frame of each relay that has one; whole: there is no more to bring; waits: it comes later.
func (s *session) pass() (whole, waits bool, err error) {
	newest := slices.ContainsFunc(s.relays, func(x *relaySession) bool { return x.due })
	going, sent := newest, false
	for _, x := range s.relays {
		if !x.busy {
			if !x.subscribed || x.closed != open ||
				!s.fits(x) || // it was published meanwhile
				x.queue() && (newest || x.box.Sent() >= x.progress.Head) ||
				!x.queue() && !x.due && x.big() {
				continue
			}
			if r := s.ringFor(x); x.placing.waits() || r != nil && r.full() {
				x.due = x.due && x.box.Ready() // the reader may have closed its end
				waits = waits || x.due || x.queue() && x.box.Ready()
				continue
			}
			ok, err := s.start(x)
			if err != nil {
				return false, false, err
			}
			if !ok {
				x.due = false
				continue
			}
		}
		done := true
		if r := s.ringFor(x); r != nil {
			done, err = s.sendRecord(r, x)
		} else {
			if x.into.number != 0 {
				done, err = s.place(x)
			}
			if done && err == nil {
				err = s.sendFrame(x)
			}
		}
		if err != nil {
			return false, false, err
		}
		if !done {
			waits = true
			continue
		}
		sent = true
		if !x.busy { // in lock-step two can be due
			x.due = x.due && x.box.Sent() < x.progress.Head
		}
		going = going || x.busy || x.queue()
	}
	return !going && !waits, waits && !sent, nil
}

// sendFrame sends the next frame of the update that x has started.
func (s *session) sendFrame(x *relaySession) (err error) {
	if x.first {
		s.answer(x) // what is behind the skipped comes behind the answer
		if x.queue() {
			s.fence()
		}
	}
	left := len(x.rest)
	payload, last := s.compose(x)
	s.posted.Add(1)
	long := left-len(x.rest) > copied
	switch {
	case len(payload) > 0:
		err = s.conn.Write(s.out, payload)
		s.out = s.out[:0]
	case len(s.out) >= flushAt:
		err = s.flush()
	}
	if long && err == nil && s.link.dirty.Load() {
		err = s.control() // dirty stays: there may be updates too
	}
	if last {
		x.sent()
	}
	return err
}

// sent is for the last frame of an update.
func (x *relaySession) sent() {
	x.finish()
	x.clock, x.published = x.at.Clock, x.at.Published
}

// appendHead begins a data frame.
func (x *relaySession) appendHead(b []byte, h header) []byte {
	b = slices.Grow(h.append(b), preamble)
	at := len(b)
	b = b[:at+headBytes]
	x.head.Encode(b[at:])
	b = binary.LittleEndian.AppendUint64(b, x.at.Clock)
	return binary.LittleEndian.AppendUint64(b, x.at.Published)
}

// compose appends the next frame of x, but for payload that is to be written from
// where it lies. The reader of a queue may be excused meanwhile, and then the rest
// does not come: what the connection does not take at once is copied.
func (s *session) compose(x *relaySession) (payload []byte, last bool) {
	if x.queue() {
		x.pub.using.Lock()
		defer x.pub.using.Unlock()
		if x.mine && x.box.Lost(x.head.Seq) {
			x.mine, x.rest = false, nil
			if x.first {
				x.head.Bytes = 0
			}
		}
	}
	payload = x.rest[:min(len(x.rest), chunk)]
	x.rest = x.rest[len(payload):]
	h := header{kind: more, id: x.pub.id, length: uint32(len(payload))}
	if last = len(x.rest) == 0; last {
		h.flags = flagLast
	}
	if !x.mine {
		h.flags |= flagEmpty
	}
	if x.first {
		x.first = false
		h.kind = data
		h.length += preamble
		if x.into.number != 0 {
			h.flags |= flagPlaced
			h.length += inRoom
		}
		s.out = x.appendHead(s.out, h)
		if x.into.number != 0 {
			s.out = binary.LittleEndian.AppendUint64(s.out, uint64(x.into.number))
			s.link.sentPlaced.Add(x.head.Bytes)
		}
	} else {
		s.out = h.append(s.out)
	}
	if x.queue() && len(payload) > copied && s.conn.Inline() {
		n := s.conn.TryWrite(s.out, payload)
		payload = payload[max(n-len(s.out), 0):]
		s.out = append(s.out[:0], s.out[min(n, len(s.out)):]...)
	}
	if x.queue() || len(payload) <= copied {
		s.out = append(s.out, payload...)
		payload = nil
	}
	return payload, last
}

// sendClocks ends the round.
func (s *session) sendClocks() {
	for _, x := range s.relays {
		if !x.subscribed || x.closed != open {
			continue
		}
		p := x.progress
		switch {
		case p.Left:
			// What a queue has not passed on by now are updates that the reader was
			// excused from.
			x.closed = final
			s.frame(closed, 0, x.pub.id, final, p.Clock, p.Published)
		case x.box.Sent() >= p.Head && (p.Clock > x.clock || p.Published > x.published):
			x.clock, x.published = p.Clock, p.Published
			s.frame(clock, 0, x.pub.id, 0, p.Clock, p.Published)
		}
	}
	for _, w := range s.words {
		if w.changed || w.wake {
			s.tellWords(w)
		}
		if w.ask != w.askTold {
			w.askTold = w.ask
			s.frame(ask, 0, w.id, 0, w.ask)
		}
	}
	// Behind the word by which this rank took back that it is away: so the sender
	// excuses it from nothing more.
	for _, p := range s.replicas {
		if p.demand != p.demandTold && p.subscribed {
			p.demandTold = p.demand
			s.frame(ack, 0, p.id, excused, p.demand)
		}
	}
}
