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
	"malt/rdma/internal/mem"
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
	if err := checkNames(name, s); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
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
		r.announce(o.pub)
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
	slots  *slots // nil: it lies elsewhere
	free   func() error
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
	return p.free()
}

// relay takes one reader's updates out of a publication. What is not marked is
// the sending goroutine's.
type relay struct {
	pub  *publication
	link *link
	box  *box.Relay

	excused uint64 // pub.mu: seq up to which slots may be overwritten; queue mode
	holding int    // pub.mu: slot that is being sent, or -1; queue mode
	copied  []byte // room for what is being sent, where slots cannot be exchanged; queue mode

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
	switch {
	case !x.queue() || !mine:
	case x.pub.slots == nil:
		x.rest = x.copied[:copy(x.copied, payload)]
	default:
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
	if !x.queue() || x.pub.slots == nil {
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
	memory := newSlots(l)
	p := &publication{name: n.name, spec: s, slots: memory, free: memory.free, users: 1}
	p.idle.L = &p.mu
	o := &outbox{pub: p}
	e := box.End{
		Place:  box.Place{Control: control, Slot: p.slots.slot},
		Layout: l, Name: n.name, Sender: t.Rank(), Member: uint32(t.Rank()), Generation: t.cfg.Generation,
		Bell: t.bell.BellID(), Ring: t.ring, State: t.state, Meter: t.meter,
		Done: func() error {
			t.open.Forget(o)
			n.drop()
			return p.release()
		},
	}
	if o.Box, err = box.NewOutbox(e, readers, p.slots.reserve); err != nil {
		return nil, err
	}
	return o, p.relay(t.rank, e, 0, readers)
}

// relay makes the relays to readers, whose numbers in the box begin with first.
func (p *publication) relay(r *rank, e box.End, first int, readers []int) (err error) {
	e.Meter, e.Done, e.Ring = nil, nil, r.ring
	for i, reader := range readers {
		e.Bell = linkBells + uint64(reader)
		x := &relay{pub: p, link: r.links[reader], holding: -1}
		if x.box, err = box.NewRelay(e, first+i); err != nil {
			return err
		}
		p.relays = append(p.relays, x)
		if x.queue() && p.slots == nil {
			if x.copied, err = mem.Map(p.spec.Bytes); err != nil {
				return noMemory(err)
			}
		}
	}
	p.users += len(readers)
	return nil
}

// Relays take the updates of a box that another transport has made to readers.
type Relays struct{ pub *publication }

// Relay makes them. The numbers of the readers in the box begin with first; e is
// what its writer was given. Its memory is there until release was called, which
// it is not where Relay fails.
func (t *transport) Relay(e box.End, s rdma.Spec, first int, readers []int, release func() error) (*Relays, error) {
	op := fmt.Sprintf("tcp: rank %d: relaying %s", t.Rank(), e.Name)
	if err := errors.Join(t.cfg.checkRanks("readers", readers), checkNames(e.Name, s)); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	p := &publication{name: e.Name, spec: s, free: release}
	if err := p.relay(t.rank, e, first, readers); err != nil {
		for _, x := range p.relays {
			x.box.Close()
			_ = mem.Unmap(x.copied)
		}
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce(p)
	return &Relays{p}, nil
}

// Excuse is to be called before that of the box, for any rank.
func (r *Relays) Excuse(reader int) { r.pub.excuse(reader) }

// announce numbers a publication and has readers told; r.mu is held.
func (r *rank) announce(p *publication) {
	p.id = r.newID()
	for _, x := range p.relays {
		x.link.addRelay(x)
	}
}

func checkNames(name string, s rdma.Spec) error {
	if len(name) > maxName || len(s.About) > maxName {
		return fmt.Errorf("a name of %d bytes, about %d; at most %d each", len(name), len(s.About), maxName)
	}
	return nil
}

// outbox is one that lets its relays know of whom it no longer waits for.
type outbox struct {
	ends.Outbox
	pub *publication
}

var _ rdma.Outbox = (*outbox)(nil)

func (o *outbox) Excuse(reader int) {
	o.pub.excuse(reader)
	o.Outbox.Excuse(reader)
}

func (p *publication) excuse(reader int) {
	if p.spec.Depth == 0 {
		return
	}
	for _, x := range p.relays {
		if x.link.peer == reader && !x.left() {
			x.excuse()
		}
	}
}

// errClosing ends what this rank itself has closed.
var errClosing = errors.New("tcp: this rank has closed")
