package remote

import (
	"encoding/binary"
	"errors"
	"fmt"

	"malt/rdma/fabric"
)

// The cards of two ranks are a pair over a connection. Each end says where its card is, with a ring for small updates.
// The other one writes a probe there, and when that has arrived, gets credit and rooms:
//
//	greeted -fabric-> probing -its record has arrived-> open
//
// Until then, and where that never happens, updates go by TCP. So they do for good once a write
// fails, a payload is lost or the connection ends. The room that is out then gets other memory.

// greeting is what a rank says of its card.
type greeting struct {
	number       uint32 // of the first record
	address, key uint64 // of the ring
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
	r := c.ring(s)
	if r == nil {
		return
	}
	s.ring.Store(r)
	address, key := c.target.Remote()
	provider, at := c.About().Provider, c.Address()
	h := header{kind: greets, length: uint32(24 + len(provider) + len(at)), arg: uint32(len(provider))}
	s.out = h.append(s.out)
	for _, v := range []uint64{uint64(r.number), address + uint64(ringBytes*l.peer), key} {
		s.out = binary.LittleEndian.AppendUint64(s.out, v)
	}
	s.out = append(append(s.out, provider...), at...)
	s.posted.Add(1)
}

func (s *session) landGreeting(h header, b []byte) error {
	if n := number(b, 0); h.arg > h.length-24 || s.theirs.Load() != nil || n>>32 > 0 || n%(1<<ringShift) > 0 {
		return malformed("a provider of %d bytes, a ring with number %d, or a second one", h.arg, n)
	}
	b = append([]byte(nil), b...)
	s.theirs.Store(&greeting{uint32(number(b, 0)), number(b, 1), number(b, 2), string(b[24 : 24+h.arg]), b[24+h.arg:]})
	s.link.kick()
	return nil
}

// probe of a pair is so long.
const probeBytes = 64

// controlPair writes the probe, and looks after the ring.
func (s *session) controlPair() error {
	r, theirs, l := s.ring.Load(), s.theirs.Load(), s.link
	if r == nil {
		return nil
	}
	if theirs == nil || l.off.Load() != nil || r.out.sent > 0 {
		return s.controlRing(r)
	}
	c := l.rank.card
	if own := c.About().Provider; theirs.provider != own {
		_ = l.unpair(fmt.Errorf("its provider is %.40q, here it is %q", theirs.provider, own))
	} else if err := c.Connect(l.peer, theirs.at); err != nil {
		_ = l.unpair(err)
	} else {
		_, _ = s.post(r, probeBytes)
	}
	return s.controlRing(r)
}

var errNumbers = errors.New("as many rooms are out as the card can tell of")

// offer offers a room for the next update of a box, if there is one. Where there is none to be had, the owner
// is told not to wait.
func (s *session) offer(p *replicaSession) {
	c, pair := s.link.rank.card, s.ring.Load()
	if pair == nil || pair.in.next.Load() == 0 || p.slots.card == nil || p.unplaced || !p.rooms.wanted() || !p.hold() {
		return
	}
	r, to, err := room{}, fabric.Region(nil), errNumbers
	if n := c.number(); n != 0 {
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
	if s.ring.Load() == nil {
		return
	}
	_ = l.unpair(errBroken)
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
