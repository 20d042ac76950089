package remote

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"malt/rdma"
	"malt/rdma/fabric"
)

// The cards of two ranks are a pair over a connection. Each end says where its card is, with a ring for small updates.
// The other one writes a probe there, and when that has arrived, gets credit and rooms:
//
//	greeted -fabric-> probing -its record has arrived-> open
//
// Until then, and where that never happens, updates go by TCP. So they do for good once a write
// fails or does not end, a payload is lost or the connection ends. The room that is out then gets other memory.

// greeting is what a rank says of its card.
type greeting struct {
	number       uint32 // of the first record
	address, key uint64 // of the ring
	provider     string
	at           []byte // the card
}

// lacks has the rank do without RDMA, at least for some of its memory.
func (r *rank) lacks(why error) {
	if short := new(fabric.MemlockError); errors.As(why, &short) {
		r.lack.CompareAndSwap(nil, &rdma.Lack{Rank: r.cfg.Rank, Limit: short.Limit, Need: short.Need})
	}
	r.without.CompareAndSwap(nil, &why) // Lacks says more by then
}

// unpair has updates go by TCP for good.
func (l *link) unpair(why error) error {
	if errors.Is(why, fabric.ErrMemlock) {
		l.rank.lacks(why)
	}
	l.off.CompareAndSwap(nil, &why)
	return fmt.Errorf("RDMA: %w", why)
}

var errBroken = errors.New("the connection was made again")

// Lacks implements rdma.Lacking.
func (r *rank) Lacks() *rdma.Lack { return r.lack.Load() }

// rdma is rdma.Traffic.RDMA: a number of malt_edge.rdma.
func (l *link) rdma() int32 {
	if why := cmp.Or(l.off.Load(), l.rank.without.Load()); why != nil && *why != errPeerLeft {
		return int32(fabric.WhyOf(*why))
	}
	if l.sentPlaced.Load() > 0 {
		return 1
	}
	return 2
}

// brought waits until what the peer's card writes is here. Its sender knows that it is written; where no
// device does that, it takes both processes. Time counts in steps: while this process was stopped, one passed.
func (l *link) brought(here func() bool, what string) error {
	lost, steps := cmp.Or(l.rank.cfg.lost, 10*time.Second), 10
	tick := time.NewTicker(lost / 10)
	defer tick.Stop()
	for !here() {
		if steps == 0 {
			return l.unpair(fmt.Errorf("%s that was written has not arrived within %v", what, lost))
		}
		select {
		case <-l.news:
		case <-tick.C:
			steps--
		case <-l.ctx.Done():
			return errClosing
		}
	}
	return nil
}

// overdue is how often the peer was asked for an answer while the oldest write has not ended.
type overdue struct {
	write uint64 // 0: there is none
	asked int
}

// controlOverdue looks at the oldest write, and ends the pair if that does not end. A peer that is stopped, for which some
// cards wait, does not answer, and is waited for.
func (s *session) controlOverdue() error {
	l, o := s.link, &s.overdue
	write := l.rank.card.oldest(l)
	if write != o.write {
		*o = overdue{write: write}
		return nil
	}
	if write == 0 || s.asked.Load() {
		return nil
	}
	o.asked++
	if o.asked > l.rank.cfg.answers() {
		return l.unpair(errors.New("a write does not end, though the peer answers"))
	}
	s.asked.Store(true)
	s.frame(beat, 0, 0, asks)
	return nil
}

// tend has a session look after what the card is to write, from time to time.
func (l *link) tend() {
	if s := l.session.Load(); s != nil && s.ring.Load() != nil {
		s.tended.Store(true)
		l.kick()
	}
}

// greet says where this rank's card is.
func (s *session) greet() {
	l, c := s.link, s.link.rank.card
	switch off := l.off.Load(); {
	case c == nil || l.peer >= l.rank.cfg.Size:
		return
	case !s.conn.Inline():
		_ = l.unpair(fabric.ErrEncrypted)
		return
	case off != nil: // it has failed over another connection
		l.rank.lack.CompareAndSwap(nil, &rdma.Lack{Rank: l.peer, Why: *off})
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
	if s.asking.Swap(false) {
		s.frame(beat, 0, 0, answers)
	}
	if r == nil {
		return nil
	}
	if c := l.rank.card; theirs != nil && l.off.Load() == nil && r.out.sent == 0 {
		if own := c.About().Provider; theirs.provider != own {
			_ = l.unpair(fmt.Errorf("its provider is %.40q, here it is %q", theirs.provider, own))
		} else if err := c.Connect(l.peer, theirs.at); err != nil {
			_ = l.unpair(err)
		} else {
			_, _ = s.post(r, probeBytes)
		}
	}
	return s.controlRing(r)
}

// offer offers a room for the next update of a box, if there is one. Where there is none to be had, the owner
// is told not to wait.
func (s *session) offer(p *replicaSession) {
	c, pair := s.link.rank.card, s.ring.Load()
	if pair == nil || pair.in.next.Load() == 0 || p.slots.card == nil || p.unplaced || !p.hold() {
		return
	}
	var r room
	var err error
	if failed := p.failed.Load(); failed != nil {
		err = *failed // what has not landed is sent: the owner would drop the room
	} else {
		r, err = p.rooms.offer(func() uint32 { return c.number(s.link) })
	}
	if r.number == 0 {
		_ = p.release()
	} else if to, failed := s.link.rank.region(p.slots, r.slot, fabric.Target); failed != nil {
		p.revoke(p.rooms.void(nil))
		err = failed
	} else {
		address, key := to.Remote()
		s.frame(grants, 0, p.id, 0, uint64(r.number), r.landed, r.seq, address+headBytes, key, uint64(p.spec.Bytes))
	}
	if err != nil {
		p.unplaced = true
		s.frame(grants, 0, p.id, 0, 0, 0, 0, 0, 0, 0)
	}
}

// region gives a slot to the card. Where that refuses, this rank goes on without.
func (r *rank) region(of *slots, slot int, a fabric.Access) (fabric.Region, error) {
	to, err := of.region(slot, a)
	if err != nil {
		r.lacks(err)
	}
	return to, err
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

// piece is the longest write: one that goes on is told from one that does not end.
const piece = 64 << 20

// place goes on with the writing of an update into its room; done once all of it is written.
func (s *session) place(x *relaySession) (done bool, err error) {
	c := s.link.rank.card
	done, err = x.into.next(min(c.Caps().MaxWrite, piece), func(at, n int, number uint32) (*write, error) {
		if !x.pub.hold() {
			return nil, errClosing
		}
		w := &write{link: s.link, back: x.pub.release, Op: fabric.Op{
			Peer: s.link.peer, From: x.from, At: headBytes + at, Bytes: n,
			Address: x.into.address + uint64(at), Key: x.into.key, Number: number,
		}}
		if ok, err := c.begin(w); !ok {
			return nil, errors.Join(err, x.pub.release())
		}
		return w, nil
	})
	if err != nil {
		err = s.link.unpair(err)
	}
	return done, err
}
