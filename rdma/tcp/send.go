package tcp

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
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

// sender sends over one connection. It works in rounds:
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
type sender struct {
	link *link
	conn *conn
	stop chan struct{}

	// What follows is of the goroutine whose turn it is: the sender's own, or one
	// that has something small to send (quick.go).
	turn      sync.Mutex
	ended     bool
	gathering bool   // nothing is written yet
	out       []byte // frames to be written
	version   uint64
	resumed   bool // the peer was told where this rank is

	relays   []*relay
	words    []*wordsRelay
	replicas []*replica
	remotes  []*remoteWords
}

var errStopped = errors.New("tcp: the connection has ended")

// run returns why it has ended: errPosted behind the last frame, errStopped.
func (s *sender) run() error {
	l := s.link
	l.sender.Store(s)
	defer func() {
		l.sender.Store(nil)
		s.turn.Lock()
		defer s.turn.Unlock()
		s.ended = true
		for _, x := range s.relays {
			x.finish()
		}
	}()
	for {
		s.turn.Lock()
		err := s.round()
		s.turn.Unlock()
		if err != nil {
			return err
		}
		for !l.dirty.Swap(false) {
			l.idle.Store(true)
			select {
			case <-l.wake:
			case <-s.stop:
				return errStopped
			}
			l.idle.Store(false)
		}
	}
}

func (s *sender) round() error {
	l := s.link
	leaving, reason := l.leaving.Load(), l.aborting.Load() // before the look
	resumed := l.resumed.Load()
	if err := s.control(); err != nil {
		return err
	}
	if !s.resumed {
		s.resumed = true
		s.frame(resume, 0, 0, 0)
	}
	if resumed {
		s.look()
		if err := s.send(); err != nil {
			return err
		}
		s.tell()
	} else {
		leaving = false
	}
	switch {
	case reason != nil:
		h := header{kind: aborted, length: uint32(len(*reason))}
		s.out = append(h.append(s.out), *reason...)
	case leaving && s.allClosed():
		s.frame(left, 0, 0, 0)
	default:
		return s.flush()
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.conn.closeWrite()
	return errPosted
}

// frame adds one whose body is numbers.
func (s *sender) frame(k kind, flags uint8, id, arg uint32, body ...uint64) {
	s.out = appendFrame(s.out, k, flags, id, arg, body...)
	s.link.posted.Add(1)
}

func (s *sender) flush() error {
	if len(s.out) == 0 || s.gathering {
		return nil
	}
	err := s.conn.write(s.out, nil)
	s.out = s.out[:0]
	return err
}

// refresh takes over the link's tables when they have changed.
func (s *sender) refresh() {
	l := s.link
	if v := l.version.Load(); v == s.version {
		return
	}
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	s.version = l.version.Load()
	s.relays, s.words, s.replicas, s.remotes = l.relays, l.words, l.replicas, l.remotes
}

// remove takes what is over out of the link's tables.
func (s *sender) remove(from func(l *link)) {
	l := s.link
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	from(l)
	l.version.Add(1)
}

// control sends whatever may overtake updates: news of boxes and words, and
// acks.
func (s *sender) control() error {
	s.refresh()
	for _, p := range s.replicas {
		switch {
		case p.over.Load():
			if !p.told {
				p.told = true
				s.frame(done, 0, p.id, 0)
				s.remove(func(l *link) { l.replicas = without(l.replicas, p) })
			}
		case !p.ready.Load():
		case !p.subscribed:
			p.subscribed, p.acked = true, p.box.Acked()
			s.frame(subscribe, 0, p.id, 0, p.box.Landed(), p.acked)
		default:
			if a := p.box.Acked(); a != p.acked {
				p.acked = a
				s.frame(ack, 0, p.id, 0, a)
			}
		}
	}
	for _, x := range s.relays {
		if x.over.Load() {
			s.remove(func(l *link) { l.relays = without(l.relays, x) })
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
	for _, p := range s.remotes {
		if a := p.asked.Load(); a != p.answered {
			p.answered = a
			s.frame(heard, 0, p.id, 0, a)
		}
		if p.over.Load() && !p.told {
			p.told = true
			s.frame(doneWords, 0, p.id, 0)
			s.remove(func(l *link) { l.remotes = without(l.remotes, p) })
		}
	}
	if len(s.out) >= flushAt {
		return s.flush()
	}
	return nil
}

func (s *sender) controlRelay(x *relay) error {
	over := x.left()
	if !x.announced {
		x.announced = true
		if !over {
			s.out = appendAnnounce(s.out, x.pub.id, x.pub.name, x.pub.spec)
			s.link.posted.Add(1)
		}
	}
	if w := x.wanted.Swap(nil); w != nil {
		if err := x.box.Resume(w.seq); err != nil {
			return err
		}
		x.box.Ack(w.ack)
		x.subscribed, x.closed = true, open
		x.clock, x.published = 0, 0
		s.frame(clock, 0, x.pub.id, 0, 0, 0) // confirms
	}
	s.answer(x)
	if over && !x.subscribed && x.closed == open {
		x.closed = withdrawn
		s.frame(closed, 0, x.pub.id, withdrawn, 0, 0)
	}
	return nil
}

// answer tells the reader up to where it has skipped.
func (s *sender) answer(x *relay) {
	if a := x.answer.Load(); a.demand != x.answered && x.subscribed {
		x.answered = a.demand
		s.frame(skip, 0, x.pub.id, 0, a.demand, a.lost, a.head)
	}
}

func (s *sender) controlWords(w *wordsRelay) {
	switch {
	case w.over.Load() || w.dropped.Load():
		if w.announced && w.dropped.Load() && !w.withdrawn {
			w.withdrawn = true
			s.frame(dropWords, 0, w.id, 0)
		}
		s.remove(func(l *link) { l.words = without(l.words, w) })
	case !w.announced:
		w.announced = true
		h := header{kind: makeWords, id: w.id, arg: uint32(w.words.n), length: uint32(len(w.words.name))}
		s.out = append(h.append(s.out), w.words.name...)
		s.link.posted.Add(1)
	}
}

// look decides what this round has to bring. The order is that of the promise:
// what is told last is looked at first.
func (s *sender) look() {
	for _, p := range s.replicas {
		p.demand = p.demanded.Load()
	}
	for _, w := range s.words {
		w.look()
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

// look takes the words' values.
func (w *wordsRelay) look() {
	w.changed = false
	if w.over.Load() || w.dropped.Load() {
		return
	}
	// Before the values: whose ring or question this is has stored them. What an
	// earlier connection was to bring may not have arrived.
	w.ask = w.asked.Load()
	w.wake = w.loud.Swap(false) || w.wake || !w.started
	own := w.words.lines[w.words.rank.cfg.Rank]
	if w.now == nil {
		w.now, w.sent = make([]uint64, len(own)), make([]uint64, len(own))
	}
	for i := range own {
		w.now[i] = own[i].Load()
		w.changed = w.changed || w.now[i] != w.sent[i] || !w.started
	}
}

// fits tells whether the round may send what x has: one that never waits leaves what
// is not copied to the next.
func (s *sender) fits(x *relay) bool { return !s.gathering || x.pub.spec.Bytes <= copied }

// send brings it.
func (s *sender) send() error {
	for {
		newest := slices.ContainsFunc(s.relays, func(x *relay) bool { return x.due })
		going := newest
		for _, x := range s.relays {
			if !x.busy {
				if !x.subscribed || x.closed != open ||
					!s.fits(x) || // it was published meanwhile
					x.queue() && (newest || x.box.Sent() >= x.progress.Head) ||
					!x.queue() && !x.due && x.big() {
					continue
				}
				ok, err := x.start()
				if err != nil {
					return err
				}
				if !ok {
					x.due = false
					continue
				}
			}
			if err := s.part(x); err != nil {
				return err
			}
			if !x.busy { // in lock-step two can be due
				x.due = x.due && x.box.Sent() < x.progress.Head
			}
			going = going || x.busy || x.queue()
		}
		if !going {
			return nil
		}
	}
}

// part sends the next frame of the update that x has started.
func (s *sender) part(x *relay) (err error) {
	if x.first {
		s.answer(x) // what is behind the skipped comes behind the answer
	}
	left := len(x.rest)
	payload, last := s.compose(x)
	s.link.posted.Add(1)
	long := left-len(x.rest) > copied
	switch {
	case len(payload) > 0:
		err = s.conn.write(s.out, payload)
		s.out = s.out[:0]
	case len(s.out) >= flushAt:
		err = s.flush()
	}
	if long && err == nil && s.link.dirty.Load() {
		err = s.control() // dirty stays: there may be updates too
	}
	if last {
		x.finish()
		x.clock, x.published = x.at.Clock, x.at.Published
	}
	return err
}

// compose appends the next frame of x, but for payload that is to be written from
// where it lies. The reader of a queue may be excused meanwhile, and then the rest
// does not come: what the connection does not take at once is copied.
func (s *sender) compose(x *relay) (payload []byte, last bool) {
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
		s.out = slices.Grow(h.append(s.out), preamble)
		at := len(s.out)
		s.out = s.out[:at+headBytes]
		x.head.Encode(s.out[at:])
		s.out = binary.LittleEndian.AppendUint64(s.out, x.at.Clock)
		s.out = binary.LittleEndian.AppendUint64(s.out, x.at.Published)
	} else {
		s.out = h.append(s.out)
	}
	if x.queue() && len(payload) > copied && !s.conn.encrypted() {
		n := s.conn.try(s.out, payload)
		payload = payload[max(n-len(s.out), 0):]
		s.out = append(s.out[:0], s.out[min(n, len(s.out)):]...)
	}
	if x.queue() || len(payload) <= copied {
		s.out = append(s.out, payload...)
		payload = nil
	}
	return payload, last
}

// tell ends the round.
func (s *sender) tell() {
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

// tellWords sends what has changed, or one word to wake who waits.
func (s *sender) tellWords(w *wordsRelay) {
	flags := uint8(flagQuiet)
	if w.wake {
		flags = 0
	}
	told := false
	for from := 0; from < len(w.now); {
		if w.started && w.now[from] == w.sent[from] {
			from++
			continue
		}
		to := from + 1
		for to < len(w.now) && to-from < setBatch && (!w.started || w.now[to] != w.sent[to]) {
			to++
		}
		s.frame(setWords, flags, w.id, uint32(from), w.now[from:to]...)
		told, from = true, to
	}
	if !told && len(w.now) > 0 {
		s.frame(setWords, flags, w.id, 0, w.now[0])
	}
	copy(w.sent, w.now)
	w.started, w.wake = true, false
}

// allClosed tells whether the reader has been told of the end of every box.
func (s *sender) allClosed() bool {
	s.refresh()
	return !slices.ContainsFunc(s.relays, func(x *relay) bool { return x.closed == open })
}
