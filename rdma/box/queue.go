package box

// Queue mode: every reader gets every update, in order; a slot is used again
// only after all have released it.
//
//	scatter n: every live reader j: ack[j] >= n-d, or wait
//	  fill slot (n-1) mod d; mask; head = n; clock; ring every reader
//	gather n:  head >= n: ready.  left and final < n: gone.  dead: gone.  else wait
//	  use; ack = n; ring the sender
//	leave:     left = 1 + final seq; at a reader ack = all; ring
//
// n is the box's own seq. The order of the looks is the caller's: first
// Inbox.Clock, which looks at the peer's state and then at left, and then Next,
// which looks at head; so what Next does not find after an error of Clock will
// never be there, and what was published before the sender left or died is
// found. The readers are those on whose edge the update is, which without others are all:
// edges.go.
//
// Ack comes after the last use: sooner would let the sender write into what is
// being read. A reader that stops holds the sender up, which is what notify-ack
// asks for; one that dies or leaves does not. A sender that dies before head has
// not sent the update; after head it has.

// ringFree tells whether every reader is done with the slot of the next update.
// ack is looked at before Gone: a reader that is gone will not read again.
func (w *Writer) ringFree() bool {
	next, d := w.seq+1, uint64(w.layout.Slots)
	if next <= d {
		return true
	}
	for r, e := range w.edges {
		need := min(next-d, e.to) // of an edge that has ended, what was sent on it
		if e.from < need && w.excused[r] < need && w.control.ack(r).Load() < need && !w.env.Gone(r) {
			return false
		}
	}
	return true
}

// takeFree takes the slot of the next update if it is free.
func (w *Writer) takeFree() bool {
	w.lock()
	defer w.unlock()
	if !w.ringFree() {
		return false
	}
	if next, d := w.seq+1, uint64(w.layout.Slots); next > d {
		w.lost = next - d
	}
	return true
}

// lock keeps the relays of a queue from its slots; without relays there is none.
func (w *Writer) lock() {
	if w.env.Lock != nil {
		w.env.Lock.Lock()
	}
}

func (w *Writer) unlock() {
	if w.env.Lock != nil {
		w.env.Lock.Unlock()
	}
}

// publishQueue marks the readers that the update is not meant for, and appends
// it.
func (w *Writer) publishQueue() {
	w.tell()
	for i := range w.layout.maskWords() {
		var not uint64
		for r := 64 * i; r < min(64*i+64, w.layout.Readers); r++ {
			if w.member[r] == w.seq && w.Served(r) {
				w.note(r)
			} else {
				not |= 1 << (r % 64)
			}
		}
		w.control.mask(&w.layout, w.slot, i).Store(not)
	}
	w.control.head().Store(w.seq)
}

// nextQueue is Next in queue mode. mine is false for an update that was not
// meant for this reader.
func (r *Reader) nextQueue() (h Header, mine, ok bool, err error) {
	// The own ack word is read because Release can have run ahead of Next: it
	// skips what the reader was excused from.
	next := max(r.seen, r.control.ack(r.me).Load()) + 1
	if r.control.head().Load() < next {
		return Header{}, false, false, nil
	}
	if r.counts && !r.served(next) {
		return r.skip(next)
	}
	s := int((next - 1) % uint64(r.layout.Slots))
	if h, err = r.open(s, next); err != nil {
		return Header{}, false, false, err
	}
	not := r.control.mask(&r.layout, s, r.me/64).Load()
	r.seen = next
	return h, not>>(r.me%64)&1 == 0, true, nil
}

// releaseQueue raises the ack word and rings the sender. It touches nothing else
// of r, since another goroutine may be in Next.
func (r *Reader) releaseQueue(seq uint64) {
	if !r.ahead || seq == released {
		seq = min(seq, r.control.head().Load())
	}
	ack := r.control.ack(r.me)
	for {
		old := ack.Load()
		if old >= seq {
			return
		}
		if ack.CompareAndSwap(old, seq) {
			break
		}
	}
	r.ringSender()
}
