package remote

import (
	"time"

	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

// A ring is registered memory of the reader, into which the card of a peer writes its small updates: each is a
// record, a whole data frame. Record n lies in slot n modulo the number of slots. Record 0 is the probe of
// the pair.
//
//	owner's slot    free -post-> under way -completed, and landed at the reader-> free
//	reader's slot   empty -its number arrives-> here -lands-> empty
//
// Over the connection the reader says how many records have landed (credit), and the owner, before clocks and
// words, how many it has posted (after), so that these land behind the records. The first "after" says that
// small updates go through the ring from now on: no record lands before it, since earlier updates of its box
// may still be on their way over the connection.
const (
	records     = 32
	recordBytes = 4 << 10
	recordMost  = recordBytes - frameBytes - preamble // of payload
	// A record's number is that of the ring, which ends in 16 zeros, and the lower bits of n.
	ringNumbers = 1 << 31
	ringShift   = 16
)

// outgoing is the owner's side, of the goroutine with session.turn but for landed.
type outgoing struct {
	slots  uint64
	sent   uint64    // records
	said   uint64    // how many of them the reader knows of over the connection; 0: the ring is not used yet
	landed *mem.Word // at the reader, as it says; written with input.turn
}

// free tells whether there is a slot for the next record. completed tells whether what was written from a slot is.
func (o *outgoing) free(completed func(slot uint64) bool) bool {
	return o.sent-o.landed.Load() < o.slots && completed(o.sent%o.slots)
}

// incoming is the reader's side.
type incoming struct {
	slots uint64
	next  *mem.Word // the record that lands next; written with input.turn
	here  []byte    // a word for each slot: 1 + the record that has arrived there last; written where the card is polled
	begun bool      // the first "after" has come; with input.turn
}

func (i *incoming) slot(n uint64) *mem.Word { return mem.WordAt(i.here, int(8*(n%i.slots))) }

// arrive is for the number of a record; not ok: it has landed, or cannot be under way.
func (i *incoming) arrive(number uint16) (ok bool) {
	next := i.next.Load()
	ahead := uint64(number - uint16(next))
	if ok = ahead < i.slots; ok {
		i.slot(next + ahead).Store(next + ahead + 1)
	}
	return ok
}

// ready tells whether the next record is here.
func (i *incoming) ready() bool {
	n := i.next.Load()
	return i.slot(n).Load() == n+1
}

// due tells whether the peer, which knows that known records have landed, is to hear of more.
func (i *incoming) due(landed, known uint64) bool {
	return landed > 0 && (known == 0 || landed/(i.slots/2) > known/(i.slots/2))
}

// land lands the records that are here, in their order, and has the peer told. input.turn is held.
func (i *incoming) land(one func(n uint64) error, tell func()) error {
	for i.ready() {
		n := i.next.Load()
		if n > 0 && !i.begun {
			return nil
		}
		if err := one(n); err != nil {
			return err
		}
		i.next.Store(n + 1)
		if i.due(n+1, n) {
			tell() // of what next says by now
		}
	}
	return nil
}

// drain has land land records, unless somebody has the turn: everybody drains after that. More may land then,
// also where somebody else has landed this one, if land says so.
func (i *incoming) drain(turn interface {
	TryLock() bool
	Unlock()
}, land func() (more bool)) {
	for i.ready() && turn.TryLock() {
		more := land()
		turn.Unlock()
		if !more {
			return
		}
	}
}

// ring is what a session has of both directions.
type ring struct {
	session  *session
	number   uint32 // of record 0 of the peer
	in       incoming
	out      outgoing
	from, to []byte         // the slots of both
	writes   [records]write // by slot

	credited uint64 // records of which the peer knows that they have landed; session.turn
	input    input  // of a record; with input.turn
}

// ring makes one, of a session's peer; nil: the carrier could not tell of all that may arrive.
func (c *card) ring(s *session) *ring {
	peer := s.link.peer
	area := func(m mem.Pinned) []byte { return m.Bytes()[ringBytes*peer:][:ringBytes] }
	words := mem.Heap(8*(records+2), 64)
	r := &ring{
		session: s, number: ringNumbers | uint32(peer)<<ringShift, from: area(c.from), to: area(c.to),
		in:  incoming{slots: records, here: words, next: mem.WordAt(words, 8*records)},
		out: outgoing{slots: records, landed: mem.WordAt(words, 8*(records+1))},
	}
	for i := range r.writes {
		r.writes[i].link = s.link
		r.writes[i].done.Store(true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbered()+records > c.Caps().MaxRooms {
		return nil
	}
	c.rings[r.number>>ringShift] = r
	return r
}

// ringBytes is what a ring takes at each end.
const ringBytes = records * recordBytes

func slotOf(area []byte, n uint64) []byte {
	return area[n%records*recordBytes:][:recordBytes:recordBytes]
}

// drain comes where the card was polled, and after input.turn was given back.
func (s *session) drain() {
	if r := s.ring.Load(); r != nil {
		r.in.drain(&s.in.turn, s.landRecords)
	}
}

// landRecords lands those that are here; more may land then. input.turn is held.
func (s *session) landRecords() (more bool) {
	in, r := s.in, s.ring.Load()
	if in.over || in.failed != nil {
		return false
	}
	if in.failed = r.in.land(s.landRecord, s.link.kick); in.failed != nil {
		_ = in.c.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine
		return false
	}
	return r.in.begun
}

func (s *session) landRecord(n uint64) error {
	l, r := s.link, s.ring.Load()
	if n == 0 {
		return nil
	}
	b := slotOf(r.to, n)
	h, err := decodeHeader(b)
	if err != nil {
		return err
	}
	if h.kind != data || h.flags != flagLast || h.length < preamble || h.length > recordBytes-frameBytes {
		return malformed("record %d is a frame of kind %d with flags %#x and %d bytes", n, h.kind, h.flags, h.length)
	}
	r.input = input{buf: b, from: frameBytes, to: frameBytes + int(h.length)}
	l.receivedPlaced.Add(uint64(h.length - preamble)) // before a reader can take it
	if err := l.landData(&r.input, h); err != nil {
		return err
	}
	s.landed.Add(1)
	return nil
}

// landAfter lands what the peer has posted up to record n.
func (s *session) landAfter(n uint64) error {
	r := s.ring.Load()
	if r == nil || n > r.in.next.Load()+records {
		return malformed("it has posted %d records", n)
	}
	if err := s.link.brought(func() bool { return s.after(n) }, "a record"); err != nil {
		return err
	}
	return s.in.failed
}

// after tells whether landAfter would not wait.
func (s *session) after(n uint64) bool {
	r := s.ring.Load()
	if r == nil {
		return true
	}
	r.in.begun = true
	s.landRecords()
	return s.in.failed != nil || r.in.next.Load() >= n
}

func (s *session) landCredit(n uint64) error {
	r := s.ring.Load()
	if r == nil || n < r.out.landed.Load() {
		return malformed("of records %d have landed", n)
	}
	r.out.landed.Store(n)
	s.link.kick()
	return nil
}

// controlRing says what is to be said of the ring.
func (s *session) controlRing(r *ring) error {
	if landed := r.in.next.Load(); r.in.due(landed, r.credited) {
		r.credited = landed
		s.frame(credit, 0, 0, 0, landed)
	}
	landed := r.out.landed.Load()
	if landed > r.out.sent {
		return malformed("of %d records %d have landed", r.out.sent, landed)
	}
	off := s.link.off.Load()
	switch {
	case off != nil && r.out.said > 0: // what was written may be lost
		return *off
	case off == nil && landed > 0 && r.out.said == 0:
		s.sayAfter(r)
	case s.tended.Swap(false) && r.out.sent > 0:
		s.fence() // so the peer notices when a record is lost
		return s.controlOverdue()
	}
	return nil
}

// fence has what is sent next land behind the records.
func (s *session) fence() {
	if r := s.ring.Load(); r != nil && r.out.said > 0 && r.out.said < r.out.sent {
		s.sayAfter(r)
	}
}

func (s *session) sayAfter(r *ring) {
	r.out.said = r.out.sent
	s.frame(after, 0, 0, 0, r.out.sent)
}

// ringFor is the ring that updates of x go through; nil: they do not.
func (s *session) ringFor(x *relaySession) *ring {
	r := s.ring.Load()
	if r == nil || r.out.said == 0 || x.queue() || x.pub.placed() || x.pub.spec.Bytes > recordMost {
		return nil
	}
	return r
}

// full tells whether a record has to wait for a slot. Then the link is woken when one may be free.
func (r *ring) full() bool {
	return !r.out.free(func(slot uint64) bool {
		w := &r.writes[slot]
		if !w.done.Load() {
			w.link.starved.Store(true) // before the look
		}
		return w.done.Load()
	})
}

// sendRecord sends the update that x has started; not ok: it has to wait.
func (s *session) sendRecord(r *ring, x *relaySession) (ok bool, err error) {
	if r.full() {
		return false, nil
	}
	h := header{kind: data, flags: flagLast, id: x.pub.id, length: uint32(preamble + len(x.rest))}
	b := append(x.appendHead(slotOf(r.from, r.out.sent)[:0], h), x.rest...)
	if ok, err = s.post(r, len(b)); ok {
		s.link.sentPlaced.Add(x.head.Bytes)
		s.recorded.Add(1)
		x.sent()
	}
	return ok, err
}

// post has the card write the next record, of n bytes, from its slot.
func (s *session) post(r *ring, n int) (ok bool, err error) {
	c, theirs := s.link.rank.card, s.theirs.Load()
	slot := r.out.sent % records
	w := &r.writes[slot]
	at := int(slot * recordBytes)
	w.Op = fabric.Op{
		Peer: s.link.peer, From: c.source, At: ringBytes*s.link.peer + at, Bytes: n,
		Address: theirs.address + uint64(at), Key: theirs.key, Number: theirs.number | uint32(uint16(r.out.sent)),
	}
	w.done.Store(false)
	if ok, err = c.begin(w); ok {
		r.out.sent++
		return true, nil
	}
	w.done.Store(true)
	if err != nil {
		err = s.link.unpair(err)
	}
	return false, err
}
