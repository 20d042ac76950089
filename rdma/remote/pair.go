package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"malt/rdma/fabric"
)

// pairing is what the cards of two ranks have with each other over a connection. Each end says where its card
// is, with a room for a probe. The other one writes its probe there, and when that has arrived, gets rooms
// for updates:
//
//	greeted -fabric-> probing -its number has arrived-> open
//
// Until then, and where that never happens, updates go by TCP. So they do for good once a write
// fails, a payload is lost or the connection ends. The room that is out then gets other memory.
type pairing struct {
	number uint32                   // of the peer's probe; 0: no pair
	theirs atomic.Pointer[greeting] // by whoever lands
	probe  *write
	open   bool // the peer gets rooms
}

// greeting is what a rank says of its card.
type greeting struct {
	number       uint32
	address, key uint64 // of the room for the probe
	provider     string
	at           []byte // the card
}

// least is the number of bytes from which on updates are placed.
func (r *rank) least() int {
	if r.cfg.PlaceFrom > 0 {
		return r.cfg.PlaceFrom
	}
	return copied + 1
}

// unpair has updates go by TCP for good.
func (l *link) unpair(why error) error {
	l.off.CompareAndSwap(nil, &why)
	if errors.Is(why, fabric.ErrMemlock) {
		l.rank.card.refused.CompareAndSwap(nil, &why)
	}
	return fmt.Errorf("RDMA: %w", why)
}

var errBroken = errors.New("the connection was made again")

// without is why this rank does without RDMA, at least for some of its memory; nil: it does not.
func (r *rank) without() error {
	if r.card == nil {
		return r.cfg.NoFabric
	}
	if why := r.card.refused.Load(); why != nil {
		return *why
	}
	return nil
}

// Memlock implements rdma.Locking.
func (r *rank) Memlock() (limit, need uint64) {
	short := r.short
	if r.card != nil {
		if why := r.card.refused.Load(); why != nil {
			errors.As(*why, &short)
		}
	}
	if short == nil {
		return 0, 0
	}
	return short.Limit, short.Need
}

// rdma is rdma.Traffic.RDMA: a number of malt_edge.rdma.
func (l *link) rdma() int32 {
	err := l.rank.without()
	if off := l.off.Load(); off != nil {
		err = *off
	}
	var why fabric.Why
	switch {
	case errors.As(err, &why):
		return int32(why)
	case err != nil:
		return int32(fabric.ErrFailed)
	case l.sentPlaced.Load() > 0:
		return 1
	}
	return 2
}

// greet says where this rank's card is.
func (s *session) greet() {
	l, c := s.link, s.link.rank.card
	switch {
	case c == nil || l.off.Load() != nil || l.peer >= l.rank.cfg.Size:
		return
	case !s.conn.Inline():
		_ = l.unpair(fabric.ErrEncrypted)
		return
	}
	if s.pair.number = c.number(l); s.pair.number == 0 {
		return
	}
	address, key := c.target.Remote()
	provider, at := c.About().Provider, c.Address()
	h := header{kind: greets, length: uint32(24 + len(provider) + len(at)), arg: uint32(len(provider))}
	s.out = h.append(s.out)
	for _, v := range []uint64{uint64(s.pair.number), address + uint64(probeBytes*(1+l.peer)), key} {
		s.out = binary.LittleEndian.AppendUint64(s.out, v)
	}
	s.out = append(append(s.out, provider...), at...)
	s.posted.Add(1)
}

func (s *session) landGreeting(h header, b []byte) error {
	if h.arg > h.length-24 || s.pair.theirs.Load() != nil {
		return malformed("a provider of %d bytes, or a second one", h.arg)
	}
	b = append([]byte(nil), b...)
	s.pair.theirs.Store(&greeting{uint32(number(b, 0)), number(b, 1), number(b, 2), string(b[24 : 24+h.arg]), b[24+h.arg:]})
	s.link.kick()
	return nil
}

// controlPair writes the probe, and looks whether that of the peer has arrived.
func (s *session) controlPair() {
	p, l, c := &s.pair, s.link, s.link.rank.card
	if p.number == 0 {
		return
	}
	if !p.open && c.arrived(p.number) {
		p.open = true
		c.forget(p.number)
	}
	theirs := p.theirs.Load()
	if theirs == nil || l.off.Load() != nil {
		return
	}
	if w := p.probe; w != nil {
		if w.done.Load() && w.err != nil {
			_ = l.unpair(fmt.Errorf("its first write: %w", w.err))
		}
		return
	}
	if own := c.About().Provider; theirs.provider != own {
		_ = l.unpair(fmt.Errorf("its provider is %.40q, here it is %q", theirs.provider, own))
		return
	}
	err := c.Connect(l.peer, theirs.at)
	w := &write{link: l, back: func() error { return nil }, Op: fabric.Op{
		Peer: l.peer, From: c.source, Bytes: probeBytes, Address: theirs.address, Key: theirs.key, Number: theirs.number,
	}}
	if err == nil {
		err = c.begin(w)
	}
	switch {
	case err == nil:
		p.probe = w
	case !errors.Is(err, fabric.ErrBusy):
		_ = l.unpair(err)
	}
}

var errNumbers = errors.New("as many rooms are out as the card can tell of")

// offer offers a room for the next update of a box, if there is one. Where there is none to be had, the owner
// is told not to wait.
func (s *session) offer(p *replicaSession) {
	c := s.link.rank.card
	if !s.pair.open || p.slots.card == nil || p.unplaced || !p.rooms.wanted() || !p.hold() {
		return
	}
	r, to, err := room{}, fabric.Region(nil), errNumbers
	if n := c.number(nil); n != 0 {
		if r, err = p.rooms.offer(n); r.number == 0 {
			c.forget(n)
		}
	}
	if r.number == 0 {
		_ = p.release()
	} else if to, err = p.slots.region(r.slot, fabric.Target); err != nil {
		p.revoke(p.rooms.void(nil))
	}
	switch {
	case err != nil:
		p.unplaced = true
		s.frame(grants, 0, p.id, 0, 0, 0, 0, 0, 0, 0)
	case r.number != 0:
		address, key := to.Remote()
		s.frame(grants, 0, p.id, 0, uint64(r.number), r.landed, r.seq, address+headBytes, key, uint64(p.spec.Bytes))
	}
}

// revoke is the end of a room that was out.
func (p *replica) revoke(was room) {
	if was.number != 0 {
		p.link.rank.card.forget(was.number)
		_ = p.release()
	}
}

// abandon takes back the rooms that the peer may still write into. The connection has ended.
func (s *session) abandon() {
	l := s.link
	if s.pair.number == 0 {
		return
	}
	_ = l.unpair(errBroken)
	l.rank.card.forget(s.pair.number)
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	for _, p := range l.replicas {
		if p.ready.Load() {
			p.revoke(p.rooms.void(p.slots.lose))
		}
	}
}

// place goes on with the writing of an update into its room; done once all of it is written.
func (s *session) place(x *relaySession) (done bool, err error) {
	c := s.link.rank.card
	done, err = x.into.next(c.Caps().MaxWrite, func(at, n int, number uint32) (*write, error) {
		if !x.pub.hold() {
			return nil, errClosing
		}
		w := &write{link: s.link, back: x.pub.release, Op: fabric.Op{
			Peer: s.link.peer, From: x.from, At: headBytes + at, Bytes: n,
			Address: x.into.address + uint64(at), Key: x.into.key, Number: number,
		}}
		err := c.begin(w)
		if err == nil {
			return w, nil
		}
		if errors.Is(err, fabric.ErrBusy) {
			err = nil
		}
		return nil, errors.Join(err, x.pub.release())
	})
	if err != nil {
		err = s.link.unpair(err)
	}
	return done, err
}
