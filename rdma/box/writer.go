package box

import (
	"sync"

	"malt/rdma"
)

// Writer is the sender's side of the protocol, in terms of reader numbers
// 0 … k-1. It does nothing that waits; one goroutine uses it.
type Writer struct {
	control control
	layout  Layout
	env     WriterEnv

	header  Header // what is the same in every slot
	seq     uint64 // of the last commit
	clock   uint64 // what the clock word holds
	slot    int    // begun and not committed, or -1
	payload []byte // of that slot
	closed  bool

	// own is this side's copy of the slots that latest words name, plus 1; the
	// words themselves are never read back, so that nobody can change them.
	own       [][2]uint32
	published []uint64
	excused   []uint64 // seq up to which a reader counts as having released
	returned  []bool   // it has come back since: relay_queue.go
	edges     []edge   // what each is served with, of a queue: edges.go
	view      uint64   // generation in which that is so; 0: they are all served
	forgotten []bool   // it is dead
	lost      uint64   // seq up to which slots of a queue have been used again
	member    []uint64 // member[r] == seq: the commit under way is meant for r
	busy      []uint64 // busy[s] == look: slot s was found used in that look
	look      uint64
	backed    []int // bytes of each slot that were reserved
}

// WriterEnv is what a Writer needs of its surroundings.
type WriterEnv struct {
	Slot func(slot int) []byte
	// Reserve makes bytes from … to of a slot present, which are then used for the
	// first time; may be nil.
	Reserve func(slot, from, to int) error
	Ring    func(bell uint64)     // never called with 0
	Gone    func(reader int) bool // dead or left: not waited for in queue mode
	Lock    sync.Locker           // End.Lock
}

// NewWriter starts an empty box in zeroed memory. bell is the sender's own.
func NewWriter(ctl []byte, l Layout, h Header, bell uint64, env WriterEnv) *Writer {
	w := &Writer{
		control: ctl, layout: l, env: env, header: h, slot: -1,
		own:       make([][2]uint32, l.Readers),
		published: make([]uint64, l.Readers),
		excused:   make([]uint64, l.Readers),
		returned:  make([]bool, l.Readers),
		edges:     make([]edge, l.Readers),
		forgotten: make([]bool, l.Readers),
		member:    make([]uint64, l.Readers),
		busy:      make([]uint64, l.Slots),
		backed:    make([]int, l.Slots),
	}
	for r := range w.edges {
		w.edges[r] = edge{to: open, told: true}
	}
	w.control.senderBell().Store(bell)
	return w
}

// Begin returns the payload of the slot that the next Commit publishes; nil, nil
// when a reader has yet to release it (queue mode only).
func (w *Writer) Begin() ([]byte, error) {
	if w.closed {
		return nil, rdma.ErrClosed
	}
	if w.slot >= 0 {
		return w.payload, nil
	}
	if w.seq == 1<<(64-slotBits)-1 {
		return nil, corrupt("%d updates were sent; a box cannot count more", w.seq)
	}
	var s int
	if w.layout.Spec.Mode.Depth() > 0 {
		if !w.takeFree() {
			return nil, nil
		}
		s = int(w.seq % uint64(w.layout.Slots))
	} else if s = w.freeSlot(); s < 0 {
		return nil, corrupt("no free slot among %d", w.layout.Slots)
	}
	first := w.layout.Spec.Bytes
	if w.layout.Spec.Partial {
		first = 0
	}
	if err := w.back(s, first); err != nil {
		return nil, err
	}
	w.use(s)
	return w.payload, nil
}

// use begins slot s, of which first bytes are there.
func (w *Writer) use(s int) {
	w.slot, w.payload = s, w.env.Slot(s)[headerBytes:headerBytes+w.layout.Spec.Bytes]
}

// backStep is what a slot grows by, so that one whose messages get longer bit by
// bit does not ask for each page.
const backStep = 64 << 10

// Reserve makes the first n bytes of the begun slot's payload present.
func (w *Writer) Reserve(n int) error { return w.back(w.slot, n) }

// back makes header and the first n bytes of payload of slot s present.
func (w *Writer) back(s, n int) error {
	to := headerBytes + n
	if to <= w.backed[s] {
		return nil
	}
	to = min(roundUp(to, backStep), w.layout.Stride)
	if w.env.Reserve != nil {
		if err := w.env.Reserve(s, w.backed[s], to); err != nil {
			return err
		}
	}
	w.backed[s] = to
	return nil
}

// Commit publishes the first n bytes of the begun slot to the readers in to; all
// says that it is for every reader. n and to have been checked.
func (w *Writer) Commit(n int, s rdma.Stamp, to []int, all bool) {
	w.seq++
	h := w.header
	h.Seq, h.Bytes, h.Stamp = w.seq, uint64(n), s
	h.Encode(w.env.Slot(w.slot))

	if all {
		for r := range w.member {
			w.member[r] = w.seq
		}
	}
	for _, r := range to {
		w.member[r] = w.seq
	}
	if w.layout.Spec.Mode.Depth() > 0 {
		w.publishQueue()
	} else {
		w.publishNewest(w.layout.parity(w.seq))
	}
	w.slot, w.payload = -1, nil
	w.publishClock(s.Clock)
}

// Advance raises the clock word without an update.
func (w *Writer) Advance(clock uint64) {
	if clock > w.clock {
		w.publishClock(clock)
	}
}

// publishClock publishes the clock to everybody, also to readers for whom there is no
// update: they may be waiting for the clock alone.
//
// The exchange is the full fence that is needed twice: between the last latest
// and this writer's next look at the pins, and between any word published here
// and the look at the readers' bells (control.readerBell).
func (w *Writer) publishClock(clock uint64) {
	w.clock = max(w.clock, clock)
	w.control.clock().Swap(w.clock)
	w.ringReaders()
}

func (w *Writer) ringReaders() {
	for r := range w.layout.Readers {
		if b := w.control.readerBell(r).Load(); b != 0 {
			w.env.Ring(b)
		}
	}
}

// note counts the commit under way as meant for r.
func (w *Writer) note(r int) {
	w.published[r]++
	w.control.published(r).Store(w.published[r])
}

// Acked is the seq up to which reader r has released; the largest where it gets nothing
// more.
func (w *Writer) Acked(r int) uint64 {
	ack, e := w.control.ack(r).Load(), w.edges[r]
	if ack >= e.to {
		return released
	}
	return max(ack, e.from)
}

// Excuse counts everything committed so far as released by reader r, unless that
// has returned since the last time.
func (w *Writer) Excuse(r int) {
	w.lock()
	defer w.unlock()
	if w.returned[r] {
		w.returned[r] = false
		return
	}
	w.excused[r] = w.seq
}

// Close leaves the box. left comes after everything published, so that whoever
// sees it can compare the final seq with what it has got: nothing is lost. The
// exchange orders it before the look at the bells.
func (w *Writer) Close() {
	if w.closed {
		return
	}
	w.closed, w.slot, w.payload = true, -1, nil
	w.control.left().Swap(1 + w.seq)
	w.ringReaders()
}
