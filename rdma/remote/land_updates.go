package remote

import (
	"errors"
	"math"

	"malt/rdma"
	"malt/rdma/box"
)

// replica finds one by its owner's number; nil for one that is forgotten.
func (l *link) replica(id uint32) (*replica, error) {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	p := first(l.replicas, func(p *replica) bool { return p.id == id })
	if p == nil && id > l.lastBox {
		return nil, malformed("box %d was not announced", id)
	}
	return p, nil
}

// enter puts a replica into the table.
func (l *link) enter(p *replica) error {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	if err := l.keep(p.bytes()); err != nil {
		return err
	}
	l.replicas = append(l.replicas, p)
	l.version.Add(1)
	return nil
}

func (l *link) landAnnounce(h header, b []byte) error {
	name, s, err := decodeAnnounce(h, b)
	if err != nil {
		return err
	}
	if h.id <= l.lastBox {
		return nil // over an earlier connection
	}
	l.lastBox = h.id
	err = l.enter(&replica{link: l, id: h.id, name: name, spec: s, subscribing: true, placed: h.flags&flagPlaced != 0})
	l.rank.bells.RingBells()
	return err
}

// landData begins an update, and ends it if it is small.
func (l *link) landData(in *input, h header) error {
	head, placed := preamble, h.flags&flagPlaced != 0
	if placed {
		head += inRoom
	}
	b, err := in.next(head)
	if err != nil {
		return err
	}
	p, err := l.replica(h.id)
	if err != nil {
		return err
	}
	if p == nil || !p.ready.Load() || p.busy {
		return malformed("an update of box %d, which has no reader or while another is under way", h.id)
	}
	if p.head, err = box.DecodeHeader(b); err != nil {
		return err
	}
	n, last := uint64(int(h.length)-head), h.flags&flagLast != 0
	p.mine = h.flags&flagEmpty == 0
	switch {
	case placed && (n > 0 || !last):
		return malformed("an update of box %d in a room, with %d bytes beside it", h.id, n)
	case !placed && (n > p.head.Bytes || last != (n == p.head.Bytes) || !last && n == 0):
		return malformed("an update of %d bytes begins with %d", p.head.Bytes, n)
	case !p.mine && (p.head.Bytes > 0 || p.spec.Mode.Depth() == 0):
		return malformed("an update that is empty, with %d bytes", p.head.Bytes)
	}
	p.at = box.Progress{Clock: number(b, 8), Published: number(b, 9)}
	if placed {
		return p.landPlaced(number(b, preamble/8))
	}
	if err := p.beginUpdate(0); err != nil {
		return err
	}
	return p.landFrame(in, int(n), last)
}

// landPlaced publishes an update of which the payload is in the room, once that has said so.
func (p *replica) landPlaced(n uint64) error {
	l := p.link
	if l.rank.card == nil || n == 0 || n > math.MaxUint32 {
		return malformed("an update of box %d in room %d", p.id, n)
	}
	if err := l.brought(func() bool { return l.rank.card.arrived(uint32(n)) }, "a payload"); err != nil {
		return err
	}
	if err := p.beginUpdate(uint32(n)); err != nil {
		return err
	}
	l.receivedPlaced.Add(p.head.Bytes)
	p.landed()
	return nil
}

func (l *link) landMore(in *input, h header) error {
	p, err := l.replica(h.id)
	if err != nil {
		return err
	}
	last := h.flags&flagLast != 0
	switch {
	case p == nil || !p.busy:
		return malformed("a part of an update of box %d, while none is under way", h.id)
	case h.flags&flagEmpty != 0:
		if h.length > 0 || !last || p.spec.Mode.Depth() == 0 {
			return malformed("the end of an update of box %d that is given up, with %d bytes", h.id, h.length)
		}
		p.mine, p.head.Bytes, p.missing = false, 0, 0
	case h.length == 0 || uint64(h.length) > p.missing || last != (uint64(h.length) == p.missing):
		return malformed("a part of %d bytes of an update of box %d that has no room for it", h.length, h.id)
	}
	return p.landFrame(in, int(h.length), last)
}

// beginUpdate finds memory for the update p.head; none where the inbox is closed, or
// cannot have it.
func (p *replica) beginUpdate(room uint32) error {
	p.missing = p.head.Bytes
	if p.failed.Load() != nil || !p.hold() {
		p.revoke(p.rooms.void(nil))
		p.busy, p.rest = true, nil
		return nil
	}
	b, used, err := p.rooms.begin(&p.head, room)
	p.revoke(used)
	if err == nil {
		p.busy, p.held, p.rest = true, true, b
		return nil
	}
	_ = p.release()
	if !errors.Is(err, rdma.ErrNoMemory) {
		return err
	}
	// The sender cannot be told. The reader is, from now on.
	failed := err // on the heap, which err is not
	p.failed.Store(&failed)
	p.link.rank.bells.RingBells()
	p.busy, p.rest = true, nil
	return nil
}

// landFrame reads n bytes of the update, and publishes it if these are the last.
func (p *replica) landFrame(in *input, n int, last bool) (err error) {
	if p.held {
		err = in.into(p.rest[:n])
		p.rest = p.rest[n:]
	} else {
		err = in.skip(n)
	}
	if err != nil {
		return err
	}
	p.missing -= uint64(n)
	if last {
		p.landed()
	}
	return nil
}

// landed publishes the update that is there.
func (p *replica) landed() {
	if p.held {
		p.rooms.commit(&p.head, p.mine, p.at)
	}
	p.drop()
	p.meet()
	if p.slots.card != nil {
		p.link.kick() // there may be a room for the next
	}
}

// meet has the reader look again when what it was waiting for behind its demand
// has come.
func (p *replica) meet() {
	if a := p.answer; a.demand > p.met.Load() && (p.box.Landed() >= a.head || p.failed.Load() != nil) {
		p.met.Store(a.demand)
		p.link.rank.bells.RingBells()
	}
}

// drop ends an update, complete or not.
func (p *replica) drop() {
	if p.held {
		p.rooms.drop()
		_ = p.release()
	}
	p.busy, p.held, p.rest = false, false, nil
}

// dropUpdates ends those of which the connection has brought a part.
func (l *link) dropUpdates() {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	for _, p := range l.replicas {
		p.drop()
	}
}

func (l *link) landForReplica(h header, b []byte) error {
	at := box.Progress{Clock: number(b, 0), Published: number(b, 1)}
	if h.kind == closed && h.arg == withdrawn {
		return l.landWithdrawn(h.id)
	}
	p, err := l.replica(h.id)
	if err != nil || p == nil {
		return err
	}
	if !p.ready.Load() || p.busy && h.kind != skip {
		return malformed("the clock of box %d, which has no reader or of which an update is under way", h.id)
	}
	r := l.rank
	if h.kind == skip {
		if d := number(b, 0); d > p.answer.demand && d <= p.demanded.Load() {
			p.answer = answer{d, number(b, 1), number(b, 2)}
			p.box.Skip(p.answer.lost)
			p.meet()
			if p.slots.card != nil {
				l.kick() // there may be a room for the next
			}
		}
		return nil
	}
	p.rooms.advance(at, h.kind == closed)
	if h.kind == clock {
		if p.subscribing {
			p.subscribing = false
			r.mu.Lock()
			p.confirmed = true
			r.mu.Unlock()
			r.bells.RingBells()
		}
		return nil
	}
	r.mu.Lock()
	if !p.taken && !p.withdrawn {
		p.forget()
	}
	r.mu.Unlock()
	p.over.Store(true)
	l.kick()
	r.bells.RingBells() // no answer comes to a reader that waits for one
	return nil
}

// landWithdrawn takes an announcement back, unless the peer is about to hear that
// it is to send: then it sends what there is.
func (l *link) landWithdrawn(id uint32) error {
	p, err := l.replica(id)
	if p == nil {
		// It asks whether it can forget the box, and not for the first time.
		if err != nil {
			l.lastBox = id
		}
		p = &replica{link: l, id: id}
		if err := l.enter(p); err != nil {
			return err
		}
	}
	l.rank.mu.Lock()
	if !p.ready.Load() {
		p.withdrawn = true
		p.over.Store(true)
	}
	l.rank.mu.Unlock()
	l.kick()
	return nil
}

// landForRelay is what the reader of a box of ours says.
func (s *session) landForRelay(h header, b []byte) error {
	l := s.link
	l.rank.mu.Lock()
	known := h.id <= l.rank.lastID
	x := first(l.relays, func(x *relay) bool { return x.pub.id == h.id })
	l.rank.mu.Unlock()
	switch {
	case x == nil && known:
	case x == nil:
		return malformed("a reader of box %d, which does not exist", h.id)
	case h.kind == ack && h.arg == excused && x.queue():
		if d := number(b, 0); d > x.answer.Load().demand {
			x.pub.using.Lock()
			lost, head := x.box.Return()
			x.pub.using.Unlock()
			// In this order: whoever sees the ack has an answer to send first.
			x.answer.Store(&answer{d, lost, head})
			x.box.Ack(lost)
		}
		l.kick()
	case h.kind == ack:
		x.box.Ack(number(b, 0))
		if x.queue() || x.pub.placed() {
			l.kick() // the reader may have room for what it was excused from, or want no more
		}
	case h.kind == grants:
		n, bytes := number(b, 0), number(b, 5)
		if n > math.MaxUint32 || n == 0 && bytes > 0 {
			return malformed("room %d of %d bytes", n, bytes)
		}
		x.offered.Store(&offered{s, room{number: uint32(n), landed: number(b, 1), seq: number(b, 2), address: number(b, 3), key: number(b, 4), bytes: bytes}})
		l.kick()
	case h.kind == subscribe:
		x.wanted.Store(&wanted{s, number(b, 0), number(b, 1)})
		l.kick()
	case !x.left():
		return malformed("the reader of box %d wants it forgotten, but it is open", h.id)
	default:
		x.over.Store(true)
		l.kick()
	}
	return nil
}
