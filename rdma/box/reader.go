package box

import "malt/rdma"

// Reader is one reader's side of the protocol. It does nothing that waits; one
// goroutine uses it, but for Release in queue mode.
type Reader struct {
	control control
	layout  Layout
	env     ReaderEnv
	me      int    // number of this reader
	want    Header // what every slot must say
	ahead   bool   // End.Replica

	counts  bool   // it keeps count of updates that are not for it: edges.go
	reads   bool   // then: it is not without an edge
	seen    uint64 // seq of the newest update that was returned or skipped
	acked   uint64 // what the ack word holds, in newest mode
	held    uint64 // seq of the update that the pin protects, or 0
	payload []byte // of the update returned last
	looked  [2]looked
	closed  bool
}

// ReaderEnv is what a Reader needs of its surroundings.
type ReaderEnv struct {
	Slot  func(slot int) []byte
	Find  func(slot int) error // Place.Find
	Ring  func(bell uint64)    // never called with 0
	State func() error         // of the sender: nil, ErrLeft or *PeerError
}

// NewReader attaches reader me, whose own doorbell is bell, to a box. The bell
// is stored with an exchange, before anything is read: control.readerBell.
func NewReader(ctl []byte, l Layout, me int, h Header, bell uint64, env ReaderEnv) *Reader {
	r := &Reader{control: ctl, layout: l, env: env, me: me, want: h}
	r.want.Bytes = uint64(l.Spec.Bytes)
	r.control.readerBell(me).Swap(bell)
	return r
}

// Next returns the header of the newest update not returned before, or in queue
// mode of the next one, and its payload: nil where it was not meant for this
// reader.
func (r *Reader) Next() (h Header, payload []byte, ok bool, err error) {
	if r.closed {
		return Header{}, nil, false, rdma.ErrClosed
	}
	mine := true
	if r.layout.Spec.Mode.Depth() > 0 {
		h, mine, ok, err = r.nextQueue()
	} else {
		h, ok, err = r.nextNewest()
	}
	if !ok || !mine {
		return h, nil, ok, err
	}
	return h, r.payload, true, nil
}

// At returns the newest update of at most that clock (lock-step only), as often as it is
// asked for; fresh is true the first time.
func (r *Reader) At(clock uint64) (h Header, payload []byte, ok, fresh bool, err error) {
	if r.closed {
		return Header{}, nil, false, false, rdma.ErrClosed
	}
	h, ok, fresh, err = r.atNewest(clock)
	if !ok {
		return Header{}, nil, false, false, err
	}
	return h, r.payload, true, fresh, nil
}

// open reads and checks the header of the slot that holds update seq.
func (r *Reader) open(slot int, seq uint64) (Header, error) {
	if r.env.Find != nil {
		if err := r.env.Find(slot); err != nil {
			return Header{}, err
		}
	}
	b := r.env.Slot(slot)
	h, err := DecodeHeader(b)
	if err == nil {
		err = h.Check(seq, &r.want)
	}
	if err == nil && uint64(len(b)) < headerBytes+h.Bytes {
		err = corrupt("slot %d has %d bytes, expected %d", slot, len(b), r.layout.Stride)
	}
	if err != nil {
		return Header{}, err
	}
	end := headerBytes + h.Bytes
	r.payload = b[headerBytes:end:end]
	return h, nil
}

// Release gives back all updates up to seq, and skips those among them that were
// not returned. ^0 means all that there are.
func (r *Reader) Release(seq uint64) {
	switch {
	case r.layout.Spec.Mode.Depth() > 0:
		r.releaseQueue(seq) // does not look at closed: that is another goroutine's
	case !r.closed:
		r.releaseNewest(seq)
	}
}

// Clock is the sender's clock; with an error it is final.
//
// State is looked at first, then left, then the clock: the sender stores them in
// the opposite order, so that behind a final state the clock is final too.
func (r *Reader) Clock() (uint64, error) {
	if r.closed {
		return 0, rdma.ErrClosed
	}
	err := r.env.State()
	left := r.control.left().Load()
	clock := r.control.clock().Load()
	if left != 0 {
		err = rdma.ErrLeft // also when it died later: the box was closed in good order
	}
	return clock, err
}

// Published counts the updates meant for this reader.
func (r *Reader) Published() uint64 { return r.control.published(r.me).Load() }

// Close releases everything for good. The sender is rung because it may be
// waiting for an ack.
func (r *Reader) Close() {
	if r.closed {
		return
	}
	r.closed, r.held = true, 0
	r.control.pin(r.me).Store(0)
	r.control.ack(r.me).Swap(released)
	r.control.readerBell(r.me).Store(0)
	r.ringSender()
}

func (r *Reader) ringSender() {
	if b := r.control.senderBell().Load(); b != 0 {
		r.env.Ring(b)
	}
}
