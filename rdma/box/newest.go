package box

import "math"

// Newest mode: an update replaces the one before it, the sender is wait-free and
// a reader lock-free.
//
//	write(set): FENCE
//	  used = {own copy of every latest} ∪ {every pin}, also of readers outside set
//	  s = lowest slot not in used; fill s; for r in set: latest[r] = seq<<16 | s
//	  clock = c; ring every reader
//	read: w = latest[r]; seq(w) <= seen: nothing new
//	  EXCHANGE pin[r] = slot(w); latest[r] != w: again with what it is now
//	  check the header; use; ack[r] = seen; pin[r] = none
//
// Why nothing is torn. The reader pins, then looks at latest again; the sender
// stores latest, then looks at the pins; a full fence lies between on both
// sides. So if the sender's look missed the pin of slot s, the reader's second
// look sees every latest stored before that look. Either s is still named there,
// and the sender does not take a slot that latest names; or it is not, and the
// reader drops it. The seq in the word makes "still" exact: the same slot with
// another update in it is another word.
//
// Why a slot is free: at most k slots are named by latest words (2k in
// lock-step), k are pinned, whether their readers live or died there, and one
// more was reserved.
//
// What a dead reader has pinned, or is named, is free once the sender goes on without it
// (Forget): it will not read again.
//
// A reader that stops anywhere holds back one slot and nobody else; a sender
// that stops or dies anywhere leaves every latest naming a complete slot.

// freeSlot is the lowest slot that nobody names or pins, or -1.
func (w *Writer) freeSlot() int {
	w.look++
	for r := range w.layout.Readers {
		if w.forgotten[r] {
			continue
		}
		for _, s := range w.own[r] {
			if s != 0 {
				w.busy[s-1] = w.look
			}
		}
		if p := w.control.pin(r).Load(); p-1 < uint64(len(w.busy)) { // 0 wraps around: none
			w.busy[p-1] = w.look
		}
	}
	for s := range w.busy {
		if w.busy[s] != w.look {
			return s
		}
	}
	return -1
}

// publishNewest names the filled slot to the readers of this commit. The fence
// behind the last of these stores is the exchange in tell.
func (w *Writer) publishNewest(parity int) {
	word := w.seq<<slotBits | uint64(w.slot)
	for r := range w.layout.Readers {
		if w.member[r] == w.seq && !w.forgotten[r] {
			w.note(r)
			w.own[r][parity] = uint32(w.slot) + 1
			w.control.latest(r, parity).Store(word)
		}
	}
}

// latest is the newest word of the given parity, or of both for newestOf.
func (r *Reader) latest(parity int) uint64 {
	if parity != newestOf {
		return r.control.latest(r.me, parity).Load()
	}
	w := r.control.latest(r.me, 0).Load()
	if r.layout.parities() == 2 {
		w = max(w, r.control.latest(r.me, 1).Load())
	}
	return w
}

const newestOf = -1

// hold pins the slot of word w, or of the word that has replaced it by the time
// the pin can be seen, and returns its word and header. What was held before is
// no longer. On failure nothing is held.
func (r *Reader) hold(parity int, w uint64) (word uint64, h Header, err error) {
	r.held = 0
	for {
		s := w & (1<<slotBits - 1)
		if s >= uint64(r.layout.Slots) || w>>slotBits == 0 {
			err = corrupt("latest word %#x names slot %d of %d", w, s, r.layout.Slots)
			break
		}
		// Exchange: the pin must be seen before latest is read again.
		r.control.pin(r.me).Swap(s + 1)
		now := r.latest(parity)
		if now != w {
			w = now
			continue
		}
		if h, err = r.open(int(s), w>>slotBits); err == nil {
			r.held = w >> slotBits
			return w, h, nil
		}
		break
	}
	r.control.pin(r.me).Store(0)
	return 0, Header{}, err
}

// nextNewest is Next in newest mode.
func (r *Reader) nextNewest() (h Header, ok bool, err error) {
	w := r.latest(newestOf)
	if w>>slotBits <= r.seen {
		return Header{}, false, nil
	}
	if w, h, err = r.hold(newestOf, w); err != nil {
		return Header{}, false, err
	}
	r.seen = w >> slotBits
	return h, true, nil
}

// atNewest is At: of the two newest updates the newer one that is of at most that clock and of
// this reader's generation. fresh is true the first time that it is returned. Where the one behind
// what was returned last is of that clock, the other cannot be better.
func (r *Reader) atNewest(clock uint64) (h Header, ok, fresh bool, err error) {
	next := r.layout.parity(r.seen + 1)
	if w := r.latest(next); w>>slotBits > r.seen {
		h, ok, err = r.upTo(clock, next, w)
	}
	if err == nil && (!ok || h.Clock != clock) {
		w := r.latest(newestOf)
		newest := r.layout.parity(w >> slotBits)
		if h, ok, err = r.upTo(clock, newest, w); !ok && err == nil {
			h, ok, err = r.upTo(clock, 1-newest, r.latest(1-newest))
		}
	}
	if ok {
		last := &r.looked[r.layout.parity(h.Seq)]
		fresh, last.taken = !last.taken, true
		r.seen = max(r.seen, h.Seq)
	}
	return h, ok, fresh, err
}

// upTo is the update of the latest word w of that parity, if it is of at most that clock.
func (r *Reader) upTo(clock uint64, parity int, w uint64) (h Header, ok bool, err error) {
	last := &r.looked[parity]
	if w == 0 || w == last.word && last.clock > clock {
		return Header{}, false, nil // no need to give up what is held
	}
	if w, h, err = r.hold(parity, w); err != nil {
		return Header{}, false, err
	}
	if w != last.word {
		*last = looked{word: w, clock: h.Clock}
	}
	if h.Generation != r.want.Generation {
		last.clock = never
	}
	if last.clock > clock {
		r.held = 0
		r.control.pin(r.me).Store(0)
		return Header{}, false, nil
	}
	return h, true, nil
}

// never is the clock of an update of another generation.
const never = math.MaxUint64

// looked is what At has found out about a latest word.
type looked struct {
	word, clock uint64
	taken       bool
}

// releaseNewest gives back what is held if seq covers it, and counts everything
// up to seq as seen.
func (r *Reader) releaseNewest(seq uint64) {
	seq = min(seq, r.latest(newestOf)>>slotBits)
	r.seen = max(r.seen, seq)
	if seq > r.acked {
		r.acked = seq
		r.control.ack(r.me).Store(seq)
	}
	if r.held != 0 && r.held <= seq {
		r.held = 0
		r.control.pin(r.me).Store(0)
	}
}
