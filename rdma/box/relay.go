package box

// Relay is a reader that passes a box on: what it gets goes to a Replica of the
// box in another process, whose reader is the one that counts. It holds a slot
// while it is sent, so that the sender of the box is never waited for nor waits;
// it releases nothing by itself: acks come from the final reader.
//
// One goroutine uses it, but for Ack and Return.
type Relay struct {
	end  End
	w    *Writer
	r    *Reader
	sent uint64 // seq of the update that was passed on last
}

// NewRelay attaches to a box in the place of its reader number index. e.Bell is
// rung when there is something to pass on.
func (o *Outbox) NewRelay(e End, index int) (*Relay, error) {
	in, err := NewInbox(e, index)
	if err != nil {
		return nil, err
	}
	return &Relay{end: e, w: o.w, r: in.r}, nil
}

// Progress is how far the sender of a box is.
type Progress struct {
	Clock     uint64
	Published uint64 // updates that were meant for this reader
	Head      uint64 // seq of the last of them, in queue mode of the last for anybody
	Left      bool   // the box was closed: all of this is final
}

// Progress is to be asked before Next: what was published up to there can be had
// from it, as long as it is not replaced.
func (l *Relay) Progress() Progress {
	p := Progress{Left: l.r.control.left().Load() != 0, Clock: l.r.control.clock().Load()}
	p.Head = l.top()
	p.Published = l.r.Published()
	return p
}

// top is the largest seq that the reader can have heard of.
func (l *Relay) top() uint64 {
	if l.end.Layout.Spec.Mode.Depth() > 0 {
		return l.r.control.head().Load()
	}
	return l.r.latest(newestOf) >> slotBits
}

// Sent is the seq up to which everything was passed on, replaced, or released
// by the reader, who can be ahead; the largest uint64 once it has closed its end.
func (l *Relay) Sent() uint64 { return max(l.sent, l.r.control.ack(l.r.me).Load()) }

// Resume begins again behind seq, which the Replica has.
func (l *Relay) Resume(seq uint64) error {
	if top := l.top(); seq > top {
		return corrupt("the reader says that it has seq %d; %d were published", seq, top)
	}
	l.Done()
	l.sent = seq
	return nil
}

// Next returns the oldest update that was not passed on and is still there. In
// newest mode it stays until Done. In queue mode the caller holds End.Lock, and
// the payload is there as long as it is not Lost; what is lost has none, like
// what was not meant for the reader: mine is false. Behind a queue's depth of
// updates that the reader has not released nothing more comes: its Replica has
// no room.
func (l *Relay) Next() (h Header, payload []byte, mine, ok bool, err error) {
	if l.end.Layout.Spec.Mode.Depth() > 0 {
		return l.nextQueue()
	}
	parity, w := l.pending()
	if w == 0 {
		return Header{}, nil, false, false, nil
	}
	if w, h, err = l.r.hold(parity, w); err != nil {
		return Header{}, nil, false, false, err
	}
	l.sent = w >> slotBits
	return h, l.r.payload, true, true, nil
}

// Ready tells whether Next has something.
func (l *Relay) Ready() bool {
	if l.end.Layout.Spec.Mode.Depth() > 0 {
		_, ok := l.next()
		return ok
	}
	_, w := l.pending()
	return w != 0
}

// pending is the oldest latest word that was not passed on, and is wanted; 0: none.
// In lock-step the one of the other parity is the next, and comes behind it. It may
// have been stored between the looks at the two, so they are looked at again until none is
// older.
func (l *Relay) pending() (parity int, word uint64) {
	sent := l.Sent()
	for older := true; older; {
		older = false
		for p := range l.end.Layout.parities() {
			if w := l.r.control.latest(l.r.me, p).Load(); w>>slotBits > sent && (word == 0 || w < word) {
				parity, word, older = p, w, true
			}
		}
	}
	return parity, word
}

// Done gives back what Next returned.
func (l *Relay) Done() {
	if l.r.held != 0 {
		l.r.held = 0
		l.r.control.pin(l.r.me).Store(0)
	}
}

// Ack says that the final reader has released everything up to seq, or all that
// there is; the largest uint64, that it has closed its end. Any goroutine may
// call it.
func (l *Relay) Ack(seq uint64) {
	ack := l.r.control.ack(l.r.me)
	if seq == released {
		ack.Swap(released)
		l.r.ringSender()
		return
	}
	seq = min(seq, l.top())
	for {
		old := ack.Load()
		if old >= seq {
			return
		}
		if ack.CompareAndSwap(old, seq) {
			break
		}
	}
	if l.end.Layout.Spec.Mode.Depth() > 0 {
		l.r.ringSender()
	}
}

// Close detaches. The sender need not wait for this reader any longer.
func (l *Relay) Close() { l.r.Close() }
