package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/fabric"
	"malt/rdma/internal/ends"
)

// Publish announces a box; a name is free again when the box is closed.
func (t *Transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (_ rdma.Outbox, err error) {
	defer rdma.During(&err, "rank %d: Publish %s", t.Rank(), name)
	if err := cmp.Or(t.open.Check(), t.cfg.checkRanks("readers", readers), checkNames(name, s)); err != nil {
		return nil, err
	}
	o, err := t.newOutbox(name, s, readers)
	if err != nil {
		return nil, err
	}
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outs[name] {
		return nil, errors.New("this rank has a box of that name already; close it first, or take another")
	}
	if err := ends.Adopt(&t.open, o); err != nil {
		return nil, err
	}
	r.outs[name] = true
	r.announce(o.pub)
	return o, nil
}

// free ends the use of a name.
func (r *rank) free(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outs, name)
}

// publication is a box of ours and those who pass it on. Its memory lives until
// it is closed and every relay has ended.
type publication struct {
	id     uint32
	name   string
	spec   rdma.Spec
	relays []*relay
	using  sync.Locker // box.End.Lock, in queue mode
	memory *slots      // nil: not here
	lease              // users: the outbox, the relays, and writes out of it
}

// placed tells whether a card can be given its slots.
func (p *publication) placed() bool { return p.memory != nil && p.memory.card != nil }

// relay takes one reader's updates out of a publication.
type relay struct {
	pub  *publication
	link *link
	box  *box.Relay

	wanted  atomic.Pointer[wanted] // what the reader has asked for last
	offered atomic.Pointer[offered]
	answer  atomic.Pointer[answer] // to the reader's last demand; by whoever lands
	over    atomic.Bool            // the reader needs nothing any more
}

// answer to the demand of that number, of a reader that was away: it skips up to
// lost, and will be sent what was published up to head.
type answer struct{ demand, lost, head uint64 }

// wanted is a subscription over a connection: the reader has everything up to seq, and
// has released up to ack.
type wanted struct {
	over     *session
	seq, ack uint64
}

// offered is the room that the reader has offered last, over a connection.
type offered struct {
	over *session
	room
}

func (x *relay) queue() bool { return x.pub.spec.Mode.Depth() > 0 }

// left tells whether the box was closed.
func (x *relay) left() bool { return x.box.Progress().Left }

// big is whether an update may take several frames.
func (x *relay) big() bool { return x.pub.spec.Bytes > chunk }

// start takes the next update. What is at hand then was published after the
// progress that goes with it.
func (s *session) start(x *relaySession) (bool, error) {
	x.at = x.box.Progress()
	if x.queue() {
		x.pub.using.Lock()
		defer x.pub.using.Unlock()
	}
	h, payload, mine, ok, err := x.box.Next()
	if !ok || err != nil {
		return false, err
	}
	x.head, x.rest, x.mine, x.first, x.busy = h, payload, mine, true, true
	if into, ok := x.placing.take(&h, mine, s.link.rank.cfg.PlaceFrom); ok {
		// Where it cannot be registered, it goes by TCP.
		if from, err := s.link.rank.region(x.pub.memory, x.pub.memory.holding(payload), fabric.Source); err == nil {
			x.from, x.into, x.rest = from, placement{room: into, size: len(payload)}, nil
		}
	}
	if h.Seq < x.at.Head {
		x.at.Clock = min(x.at.Clock, h.Clock) // in lock-step: the rest comes with the next
	}
	// Read behind it: never less than what the reader gets.
	x.at.Published = x.box.Progress().Published
	return true, nil
}

// finish ends what start began, sent or not.
func (x *relaySession) finish() {
	x.busy, x.rest = false, nil
	x.into, x.from = placement{}, nil
	x.box.Done()
}

// cardFor is the card that brings updates of a box; nil: they are too small, or too short for memory that
// is there as a whole.
func (r *rank) cardFor(s rdma.Spec) *card {
	if s.Partial || s.Bytes < r.cfg.PlaceFrom {
		return nil
	}
	return r.card
}

// newOutbox makes a box and the relays to its readers.
func (t *Transport) newOutbox(name string, s rdma.Spec, readers []int) (*outbox, error) {
	l, err := box.NewLayout(s, len(readers))
	if err != nil {
		return nil, err
	}
	control, err := newControl(l)
	if err != nil {
		return nil, err
	}
	memory := newSlots(l, t.cardFor(s))
	p := &publication{name: name, spec: s, memory: memory, lease: lease{back: memory.free, users: 1}}
	o := &outbox{pub: p}
	e := box.End{
		Place:  box.Place{Control: control, Slot: memory.slot},
		Layout: l, Name: name, Sender: t.Rank(), Member: uint32(t.Rank()), Generation: t.cfg.Generation,
		Bell: t.bell.BellID(), Ring: t.ring, State: t.state, Meter: t.meter,
		Done: func() error {
			t.open.Forget(o)
			t.free(name)
			return p.release()
		},
	}
	if s.Mode.Depth() > 0 {
		e.Lock = new(sync.Mutex)
	}
	if o.Box, err = box.NewOutbox(e, readers, memory.reserve); err != nil {
		return nil, err
	}
	return o, p.relay(t.rank, o.Box, e, 0, readers)
}

// relay makes the relays of o, which was made of e, to readers, whose numbers in
// the box begin with first.
func (p *publication) relay(r *rank, o *box.Outbox, e box.End, first int, readers []int) (err error) {
	p.using = e.Lock
	e.Meter, e.Done, e.Ring = nil, nil, r.ring
	for i, reader := range readers {
		e.Bell = linkBells + uint64(reader)
		x := &relay{pub: p, link: r.links[reader]}
		x.answer.Store(&answer{})
		if x.box, err = o.NewRelay(e, first+i); err != nil {
			return err
		}
		p.relays = append(p.relays, x)
	}
	p.users += len(readers)
	return nil
}

// Relay takes the updates of a box that another transport has made, of e, to
// readers, whose numbers in it begin with first. Its memory is there until release
// was called, which it is not where Relay fails.
func (t *Transport) Relay(o *box.Outbox, e box.End, first int, readers []int, release func() error) (err error) {
	s := e.Layout.Spec
	defer rdma.During(&err, "rank %d: relaying %s", t.Rank(), e.Name)
	if err := errors.Join(t.cfg.checkRanks("readers", readers), checkNames(e.Name, s)); err != nil {
		return err
	}
	p := &publication{name: e.Name, spec: s, lease: lease{back: release}}
	if err := p.relay(t.rank, o, e, first, readers); err != nil {
		for _, x := range p.relays {
			x.box.Close()
		}
		return err
	}
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce(p)
	return nil
}

// announce numbers a publication and has readers told; r.mu is held.
func (r *rank) announce(p *publication) {
	p.id = r.newID()
	for _, x := range p.relays {
		x.link.addRelay(x)
	}
}

func checkNames(name string, s rdma.Spec) error {
	if len(name) > maxName || len(s.About) > maxName {
		return fmt.Errorf("a name of %d bytes, about %d; the limit is %d each", len(name), len(s.About), maxName)
	}
	return nil
}

// outbox is the sending end of a publication.
type outbox struct {
	ends.Outbox
	pub *publication
}

// errClosing ends what this rank itself has closed.
var errClosing = errors.New("this rank has closed")
