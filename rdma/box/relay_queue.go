package box

// Passing a queue on. A reader that is not reading for a while says so, and the
// sender may then excuse it: it uses slots again that the reader has not
// released. Within one machine the reader releases everything up to the head
// before it reads again. Over a network each hears of the other later:
//
//	excuse  (sender, which needs a slot and has looked: the reader is away)
//	        the reader has returned since the last excuse: nothing
//	        else it counts as having released what is published
//	begin   all have released the slot or are excused: lost = seq of what it held
//	pass    seq <= lost: without payload, also the rest of what is under way
//	return  (behind the reader's word that it is not away any more)
//	        the reader is not excused any more; it skips up to lost, and looks
//	        when what was published by then has come, for which it had no room
//
// What the reader skips is exactly what is not there any more. More must not be:
// of two ranks that return at the same time each would skip the update that the
// other has sent since, and both would wait for the next. And not less: a sender
// that has looked before the word came excuses behind it. One such excuse can
// follow each return, so the first does nothing: the sender finds its slot taken
// and looks again.
//
// All of this is done under End.Lock, also the use of a payload.

// Lost tells whether the slot of the update has been used again.
func (l *Relay) Lost(seq uint64) bool { return seq <= l.w.lost }

// Return says that the reader reads again; it is to skip everything up to lost,
// which Ack has to be told, and to look only when everything up to head has come.
func (l *Relay) Return() (lost, head uint64) {
	l.w.excused[l.r.me], l.w.returned[l.r.me] = 0, true
	return l.w.lost, l.top()
}

// next is the seq of the update of a queue that comes next, and whether it can: it is there, and the
// reader has room.
func (l *Relay) next() (seq uint64, ok bool) {
	ack := l.r.control.ack(l.r.me).Load()
	if ack == released {
		return 0, false
	}
	seq = max(l.sent, ack) + 1 // ack can be ahead: then the reader has skipped what was not sent
	return seq, seq <= l.r.control.head().Load() && seq <= ack+uint64(l.r.layout.Slots)
}

func (l *Relay) nextQueue() (h Header, payload []byte, mine, ok bool, err error) {
	r := l.r
	next, ok := l.next()
	if !ok {
		return Header{}, nil, false, false, nil
	}
	if l.Lost(next) {
		h = r.want
		h.Seq, h.Bytes = next, 0
		l.sent = next
		return h, nil, false, true, nil
	}
	s := int((next - 1) % uint64(r.layout.Slots))
	if h, err = r.open(s, next); err != nil {
		return Header{}, nil, false, false, err
	}
	l.sent = next
	if r.control.mask(&r.layout, s, r.me/64).Load()>>(r.me%64)&1 != 0 {
		h.Bytes = 0
		return h, nil, false, true, nil
	}
	return h, r.payload, true, true, nil
}
