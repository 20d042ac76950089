package box

// Replica is the writing end of a copy, for one reader, of another rank's box:
// what a Relay took out goes in here, and an Inbox reads it. One goroutine uses
// it.
type Replica struct {
	end    End
	w      *Writer
	landed uint64 // seq of the update that was published last
}

// NewReplica makes it in fresh memory, laid out for one reader. e.Bell is rung
// when the reader has released something that its sender waits for. reserve is
// as for NewOutbox.
func NewReplica(e End, reserve func(slot, from, to int) error) (*Replica, error) {
	if err := e.attach(); err != nil {
		return nil, err
	}
	if e.Layout.Readers != 1 {
		return nil, corrupt("a replica with %d readers", e.Layout.Readers)
	}
	h := e.Header()
	p := &Replica{end: e, w: NewWriter(e.Control, e.Layout, h, e.Bell, WriterEnv{
		Slot: e.Slot, Reserve: reserve, Ring: e.Ring,
		Gone: func(int) bool { return false },
	})}
	e.format()
	return p, nil
}

// Landed is the seq of the update that was published last.
func (p *Replica) Landed() uint64 { return p.landed }

// Acked is the seq up to which the reader has released; the largest uint64 once
// it has closed its end.
func (p *Replica) Acked() uint64 { return p.w.control.ack(0).Load() }

// Skip releases everything up to seq for the reader, who has asked for it and
// holds nothing.
func (p *Replica) Skip(seq uint64) {
	ack := p.w.control.ack(0)
	for old := ack.Load(); old < seq && !ack.CompareAndSwap(old, seq); old = ack.Load() {
	}
}

// Room is a slot that is free until the next Begin: for the payload of whichever update comes next, or
// in a queue for that of the update seq. There is none while the reader has yet to release it, and once
// either end is closed.
func (p *Replica) Room() (slot int, seq uint64, ok bool, err error) {
	acked, before := p.Acked(), p.w.seq
	if p.w.closed || acked == released {
		return 0, 0, false, nil
	}
	p.w.slot, p.w.seq = -1, p.landed
	if p.end.Layout.Spec.Mode.Depth() > 0 {
		p.w.seq = max(p.landed, acked)
		seq = p.w.seq + 1
	}
	b, err := p.w.Begin()
	slot, p.w.slot, p.w.seq = p.w.slot, -1, before
	return slot, seq, b != nil, err
}

// Renew says that a slot, a Room, has other memory from now on, none of it reserved.
func (p *Replica) Renew(slot int) { p.w.backed[slot] = 0 }

// Anywhere is for Begin: the payload has no room yet.
const Anywhere = -1

// Begin returns the memory for the payload of the update with header h: the slot room, or Anywhere.
// What was begun before and not committed is dropped. Nothing of h is believed: what does
// not fit the box is ErrCorrupt.
func (p *Replica) Begin(h *Header, room int) ([]byte, error) {
	want := p.w.header
	want.Bytes = uint64(p.end.Layout.Spec.Bytes)
	if err := h.Check(h.Seq, &want); err != nil {
		return nil, err
	}
	if h.Generation != want.Generation {
		return nil, corrupt("seq %d of generation %d, expected %d", h.Seq, h.Generation, want.Generation)
	}
	if h.Seq <= p.landed || h.Seq >= 1<<(64-slotBits) {
		return nil, corrupt("seq %d behind seq %d", h.Seq, p.landed)
	}
	if p.end.Layout.Spec.Mode.Depth() > 0 {
		if last := max(p.landed, p.Acked()); h.Seq-1 > last {
			return nil, corrupt("seq %d of a queue behind seq %d", h.Seq, last)
		}
	}
	p.w.slot, p.w.seq = -1, h.Seq-1
	if room != Anywhere {
		p.w.use(room)
	}
	b, err := p.w.Begin()
	if err == nil && b != nil {
		err = p.w.Reserve(int(h.Bytes))
	}
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, corrupt("seq %d, though the reader has released up to %d only, and the queue has room for %d", h.Seq, p.Acked(), p.end.Layout.Slots)
	}
	return b[:h.Bytes], nil
}

// Commit publishes what Begin began with the same header. mine is false for an
// update that was not meant for the reader, in queue mode.
func (p *Replica) Commit(h *Header, mine bool, progress Progress) {
	p.publishedAt(progress)
	if mine {
		p.w.published[0]-- // counted in already; Commit counts it
	}
	p.w.Commit(int(h.Bytes), h.Stamp, nil, mine)
	p.landed = h.Seq
	p.w.Advance(progress.Clock)
}

// Advance says how far the sender is, without an update.
func (p *Replica) Advance(progress Progress) {
	p.publishedAt(progress)
	p.w.Advance(progress.Clock)
}

// publishedAt comes before the update, so that the count is never less than what
// the reader has got.
func (p *Replica) publishedAt(progress Progress) {
	if progress.Published > p.w.published[0] {
		p.w.published[0] = progress.Published
		p.w.control.published(0).Store(progress.Published)
	}
}

// Leave says that the sender has closed its end: what has landed is all.
func (p *Replica) Leave(progress Progress) {
	p.Advance(progress)
	p.w.Close()
}
