package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
)

// Publish announces a box; a name is free again when the box is closed.
func (t *transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	outs, err := t.publish(name, s, readers, [][]int{readers})
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// PublishEach makes boxes that have nothing in common but the name.
func (t *transport) PublishEach(_ context.Context, name string, s rdma.Spec, readers []int) ([]rdma.Outbox, error) {
	sets := make([][]int, len(readers))
	for i := range readers {
		sets[i] = readers[i : i+1]
	}
	return t.publish(name, s, readers, sets)
}

func (t *transport) publish(name string, s rdma.Spec, readers []int, sets [][]int) (outs []rdma.Outbox, err error) {
	if err := t.open.Check(); err != nil {
		return nil, fmt.Errorf("tcp: rank %d: %w", t.Rank(), err)
	}
	op := fmt.Sprintf("tcp: rank %d: Publish %s", t.Rank(), name)
	if err := t.cfg.checkRanks("readers", readers); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if len(name) > maxName || len(s.About) > maxName {
		return nil, fmt.Errorf("%s: a name of %d bytes, about %d; at most %d each", op, len(name), len(s.About), maxName)
	}
	n := &naming{rank: t.rank, name: name, left: len(sets)}
	all := make([]*outbox, len(sets))
	for i, set := range sets {
		if all[i], err = t.newOutbox(n, s, set); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outs[name] {
		return nil, fmt.Errorf("%s: this rank has a box of that name already; close it first, or take another", op)
	}
	if err := ends.Adopt(&t.open, all...); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	r.outs[name] = true
	for _, o := range all {
		o.pub.id = r.newID()
		for _, x := range o.pub.relays {
			x.link.addRelay(x)
		}
		outs = append(outs, o)
	}
	return outs, nil
}

// naming frees a name when the last of its boxes is closed.
type naming struct {
	rank *rank
	name string
	left int // guarded by rank.mu
}

func (n *naming) drop() {
	n.rank.mu.Lock()
	defer n.rank.mu.Unlock()
	if n.left--; n.left == 0 {
		delete(n.rank.outs, n.name)
	}
}

// publication is a box of ours and those who pass it on. Its memory lives until
// it is closed and every relay has ended.
type publication struct {
	id     uint32
	name   string
	spec   rdma.Spec
	slots  *slots
	relays []*relay

	mu    sync.Mutex // guards slots in queue mode, excused and holding of the relays, users
	idle  sync.Cond  // a relay's holding has changed
	users int        // the outbox and the relays
}

// release is called once by each user, at its end.
func (p *publication) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 {
		return nil
	}
	return p.slots.free()
}

// relay takes one reader's updates out of a publication. What is not marked is
// the sending goroutine's.
type relay struct {
	pub  *publication
	link *link
	box  *box.Relay

	excused uint64 // pub.mu: seq up to which slots may be overwritten; queue mode
	holding int    // pub.mu: slot that is being sent, or -1; queue mode

	wanted atomic.Pointer[wanted] // what the reader has asked for on this connection
	over   atomic.Bool            // the reader needs nothing any more

	// The reader's last demand to skip what it was excused from, and up to where
	// that was done;
	// written by the landing goroutine, skipped before demand.
	demand, skipped atomic.Uint64
	before          uint64 // what was published when words of the reader landed last; of the landing goroutine
	answered        uint64 // over this connection

	// Of this connection.
	announced, subscribed bool
	closed                int    // open, withdrawn or final
	clock, published      uint64 // that the reader was told

	// Of this round of the sender.
	progress box.Progress
	due      bool

	// The update that is being sent.
	head   box.Header
	first  bool // its first frame is still to come
	mine   bool
	busy   bool
	rest   []byte
	at     box.Progress
	frames int
}

// wanted is a subscription: the reader has everything up to seq, and has released
// up to ack.
type wanted struct{ seq, ack uint64 }

func (x *relay) queue() bool { return x.pub.spec.Depth > 0 }

// left tells whether the box was closed.
func (x *relay) left() bool { return x.box.Progress().Left }

// big is whether an update may take several frames.
func (x *relay) big() bool { return x.pub.spec.Bytes > chunk }

// start takes the next update. What is at hand then was published after the
// progress that goes with it.
func (x *relay) start() (bool, error) {
	x.at = x.box.Progress()
	if x.queue() {
		x.pub.mu.Lock()
		defer x.pub.mu.Unlock()
	}
	h, payload, mine, ok, err := x.box.Next(x.excused)
	if !ok || err != nil {
		return false, err
	}
	x.head, x.rest, x.mine, x.first, x.busy, x.frames = h, payload, mine, true, true, 0
	if x.queue() && mine {
		x.holding = int((h.Seq - 1) % uint64(x.pub.spec.Depth))
	}
	if h.Seq < x.at.Head {
		x.at.Clock = min(x.at.Clock, h.Clock) // in lock-step: the rest comes with the next
	}
	// Read behind it: never less than what the reader gets.
	x.at.Published = x.box.Progress().Published
	return true, nil
}

// finish ends what start began, sent or not.
func (x *relay) finish() {
	x.busy, x.rest = false, nil
	x.box.Done()
	if !x.queue() {
		return
	}
	x.pub.mu.Lock()
	defer x.pub.mu.Unlock()
	x.holding = -1
	x.pub.idle.Broadcast()
	for _, y := range x.pub.relays {
		if y.holding >= 0 {
			return
		}
	}
	x.pub.slots.freeOld()
}

// excuse lets the outbox overwrite everything published so far. What is being
// sent right now goes on in memory of its own; what is not sent yet will be sent
// without payload.
func (x *relay) excuse() {
	x.pub.mu.Lock()
	defer x.pub.mu.Unlock()
	x.excused = x.box.Progress().Head
	slot := x.holding
	if slot < 0 || slot == detached {
		return
	}
	if err := x.pub.slots.exchange(slot); err != nil {
		// No memory for a copy. Without the connection the update is never complete
		// at the reader, and with the next it is one without payload.
		for x.holding == slot {
			x.link.breakUp(err)
			x.pub.idle.Wait()
		}
		return
	}
	for _, y := range x.pub.relays {
		if y.holding == slot {
			y.holding = detached // the old memory, which is nobody else's now
		}
	}
}

// detached is a slot that the relay does not share with the outbox any more.
const detached = 1 << 30

// newOutbox makes a box and the relays to its readers.
func (t *transport) newOutbox(n *naming, s rdma.Spec, readers []int) (*outbox, error) {
	l, err := box.NewLayout(s, len(readers))
	if err != nil {
		return nil, err
	}
	control, err := newControl(l)
	if err != nil {
		return nil, err
	}
	p := &publication{name: n.name, spec: s, slots: newSlots(l), users: 1 + len(readers)}
	p.idle.L = &p.mu
	o := &outbox{pub: p}
	e := box.End{
		Place:  box.Place{Control: control, Slot: p.slots.slot},
		Layout: l, Name: n.name, Sender: t.Rank(), Member: uint32(t.Rank()), Generation: t.cfg.Generation,
		Bell: t.bellID, Ring: t.ring, State: t.state, Meter: t.meter,
		Done: func() error {
			t.open.Forget(o)
			n.drop()
			return p.release()
		},
	}
	if o.Box, err = box.NewOutbox(e, readers, p.slots.reserve); err != nil {
		return nil, err
	}
	e.Meter, e.Done = nil, nil
	for i, reader := range readers {
		e.Bell = linkBells + uint64(reader)
		x := &relay{pub: p, link: t.links[reader], holding: -1}
		if x.box, err = box.NewRelay(e, i); err != nil {
			return nil, err
		}
		p.relays = append(p.relays, x)
	}
	return o, nil
}

// outbox is one that lets its relays know of whom it no longer waits for.
type outbox struct {
	ends.Outbox
	pub *publication
}

var _ rdma.Outbox = (*outbox)(nil)

func (o *outbox) Excuse(reader int) {
	if o.pub.spec.Depth > 0 {
		for _, x := range o.pub.relays {
			if x.link.peer == reader && !x.left() {
				x.excuse()
			}
		}
	}
	o.Outbox.Excuse(reader)
}

// errClosing ends what this rank itself has closed.
var errClosing = errors.New("tcp: this rank has closed")
