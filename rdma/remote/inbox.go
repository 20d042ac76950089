package remote

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
)

// replica is a box of another rank, as far as it is known here: announced; ready,
// when it has memory for a copy of the updates and the owner is told to send
// them; confirmed, when the owner does; taken, by an inbox. Whoever lands writes the
// copy. That is one goroutine at a time, and nobody else enters replicas into the
// link's table.
type replica struct {
	link *link
	id   uint32 // its owner's number
	name string
	spec rdma.Spec

	placed    bool // a card can bring its updates
	withdrawn bool // rank.mu: nobody can subscribe any more
	confirmed bool // rank.mu
	taken     bool // rank.mu

	// From when it is ready.
	ready atomic.Bool
	end   box.End
	box   *box.Replica
	rooms rooms
	slots *slots
	lease             // users: who will read it, an update that is landing, and a room that is out
	over  atomic.Bool // the owner has closed it, and all is here: it can forget us

	// How often the reader has demanded to skip what it was excused from, in queue
	// mode, and how often that was done. In between it holds nothing and gets
	// nothing.
	demanded, met atomic.Uint64
	answer        answer // of whoever lands

	failed atomic.Pointer[error] // no memory for an update: none can be had any more

	// Of whoever lands: whether the owner has yet to confirm, and the
	// update that is under way, which the session's end drops.
	subscribing bool

	busy    bool
	held    bool // in the box; else it is dropped
	head    box.Header
	mine    bool
	missing uint64 // bytes to come
	rest    []byte // where they go
	at      box.Progress
}

// Subscribe takes all boxes together, once the last of them is announced: what
// fails or is given up has taken nothing.
func (t *Transport) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) (ins []rdma.Inbox, err error) {
	if err := t.ins.Take(name, senders); err != nil {
		return nil, fmt.Errorf("rank %d: Subscribe %s: %w", t.Rank(), name, err)
	}
	err = t.seek(ctx, name, s, senders, func(found []*replica, missing []int) (err error) {
		if len(missing) == 0 {
			ins, err = t.makeInboxes(found)
		}
		return err
	})
	if err != nil {
		t.ins.Free(name, senders...)
	}
	return ins, err
}

// Await returns when Subscribe would not wait, or with the error of hopeless,
// which is asked at each ring.
func (t *Transport) Await(ctx context.Context, name string, s rdma.Spec, senders []int, hopeless func() error) error {
	return t.seek(ctx, name, s, senders, func(_ []*replica, missing []int) error {
		if len(missing) > 0 {
			return hopeless()
		}
		return nil
	})
}

// seek waits until no sender is missing. At each ring it hands over what there is, with rank.mu held.
func (t *Transport) seek(ctx context.Context, name string, s rdma.Spec, senders []int, there func(found []*replica, missing []int) error) (err error) {
	op := fmt.Sprintf("rank %d: Subscribe %s", t.Rank(), name)
	defer rdma.During(&err, "%s", op)
	if err := t.cfg.checkRanks("senders", senders); err != nil {
		return err
	}
	return t.await(ctx, func() ([]int, error) {
		t.rank.mu.Lock()
		defer t.rank.mu.Unlock()
		found, missing, err := t.find(op, name, s, senders)
		if err == nil {
			err = there(found, missing)
		}
		return missing, err
	})
}

// await asks for missing ranks at each ring until there are none.
func (t *Transport) await(ctx context.Context, ask func() (missing []int, err error)) error {
	var missing []int
	var failed error
	err := t.Wait(ctx, func() bool {
		missing, failed = ask()
		return failed != nil || len(missing) == 0
	})
	if failed != nil {
		err = fmt.Errorf("rank %d: %w", t.Rank(), failed)
	}
	if err != nil && len(missing) > 0 {
		err = fmt.Errorf("waiting for ranks %v: %w", missing, err)
	}
	return err
}

// find looks all senders up and has them send: what one of those that are not
// missing publishes from then on comes, also when it leaves. rank.mu is held.
func (t *Transport) find(op, name string, s rdma.Spec, senders []int) (found []*replica, missing []int, err error) {
	r := t.rank
	for _, sender := range senders {
		// Of a sender that has gone nothing comes any more.
		if err := rdma.Gone(r.state(sender), op, sender); err != nil {
			return nil, nil, err
		}
		p := r.links[sender].announcedAs(name)
		if p != nil && p.spec != s {
			return nil, nil, &rdma.MismatchError{Name: name, Rank: sender, Ours: box.Describe(s), Theirs: box.Describe(p.spec)}
		}
		if p == nil || !p.confirmed {
			missing = append(missing, sender)
		}
		if p != nil && !p.ready.Load() {
			if err := p.prepare(); err != nil {
				return nil, nil, err
			}
		}
		found = append(found, p)
	}
	return found, missing, nil
}

// makeInboxes makes inboxes of what was found; rank.mu is held.
func (t *Transport) makeInboxes(found []*replica) ([]rdma.Inbox, error) {
	all := make([]*inbox, len(found))
	for i, p := range found {
		var err error
		if all[i], err = t.newInbox(p); err != nil {
			return nil, err
		}
	}
	if err := ends.Adopt(&t.open, all...); err != nil {
		return nil, err
	}
	ins := make([]rdma.Inbox, len(all))
	for i, in := range all {
		ins[i] = in
		found[i].taken = true
	}
	return ins, nil
}

// prepare makes memory for the copy and has the owner told; rank.mu is held.
func (p *replica) prepare() error {
	l, err := box.NewLayout(p.spec, 1)
	if err != nil {
		return err
	}
	control, err := newControl(l)
	if err != nil {
		return err
	}
	r, sender := p.link.rank, p.link.peer
	var c *card
	if p.placed {
		c = r.card
	}
	p.slots = newSlots(l, c)
	p.end = box.End{
		Place:  box.Place{Control: control, Slot: p.slots.slot},
		Layout: l, Name: p.name, Sender: sender, Member: uint32(sender), Generation: r.cfg.Generation,
		Bell: linkBells + uint64(sender), Replica: true, Ring: r.ring, State: r.state, Meter: r.meter,
	}
	if p.box, err = box.NewReplica(p.end, p.slots.reserve); err != nil {
		return err
	}
	p.rooms = rooms{lock: new(sync.Mutex), box: p.box}
	p.users, p.back = 1, p.slots.free
	p.ready.Store(true)
	p.link.kick()
	return nil
}

// forget gives a replica up that nobody has taken or will; rank.mu is held.
func (p *replica) forget() {
	p.withdrawn = true
	if p.ready.Load() {
		_ = p.release()
	}
}

// newInbox makes the reading end; what has landed already is there.
func (t *Transport) newInbox(p *replica) (in *inbox, err error) {
	in = &inbox{t: t, replica: p}
	e := p.end
	e.Bell = t.bell.BellID()
	e.Done = func() error {
		t.open.Forget(in)
		t.ins.Free(p.name, p.link.peer)
		return p.release()
	}
	in.Box, err = box.NewInbox(e, 0)
	return in, err
}

// inbox gives what has landed, and nothing while its owner has yet to hear what
// it skips.
type inbox struct {
	ends.Inbox
	t       *Transport
	replica *replica
	last    uint64       // Mu: seq of what Next has returned
	vain    atomic.Int64 // when Next has found nothing, since started
}

var _ rdma.Inbox = (*inbox)(nil)

func (i *inbox) Next() (rdma.Update, bool, error) {
	u, ok, err := i.next()
	if !ok && err == nil && i.again() && i.replica.link.inlineProgress() {
		u, ok, err = i.next()
	}
	return u, ok, err
}

// A look that finds nothing comes again soon where somebody does nothing but look.
// Others need not ask the kernel.
const soon = 50 * time.Microsecond

// again tells whether the last look in vain was a moment ago.
func (i *inbox) again() bool {
	now := int64(time.Since(started))
	return now-i.vain.Swap(now) < int64(soon)
}

var started = time.Now()

func (i *inbox) next() (rdma.Update, bool, error) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Returned() {
		return rdma.Update{}, false, nil
	}
	u, ok, err := i.Box.Next()
	switch {
	case ok:
		i.last = u.Seq
	case err == nil:
		err = i.failed()
	}
	return u, ok, err
}

func (i *inbox) At(clock uint64) (rdma.Update, bool, error) {
	u, ok, err := i.Inbox.At(clock)
	if err == nil && (!ok || u.Clock < clock) {
		err = i.failed()
	}
	return u, ok, err
}

// failed says that what came did not find memory.
func (i *inbox) failed() error {
	if err := i.replica.failed.Load(); err != nil {
		return fmt.Errorf("%s from rank %d: %w", i.replica.name, i.From(), *err)
	}
	return nil
}

// Release in queue mode is told the sender at once, which may be waiting; in
// newest mode nobody does.
func (i *inbox) Release(seq uint64) {
	i.Inbox.Release(seq)
	if i.replica.spec.Mode.Depth() == 0 {
		i.t.later.ask()
	}
}

// Return has the owner say what is lost. Whatever else has come, or is on its
// way, lies in memory of the replica and can be read.
func (i *inbox) Return() {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if p := i.replica; !i.Closed && p.spec.Mode.Depth() > 0 {
		i.Box.Release(i.last)
		p.demanded.Add(1)
		p.link.kick()
	}
}

// Returned is true also when the owner will not say any more.
func (i *inbox) Returned() bool {
	p := i.replica
	return p.met.Load() == p.demanded.Load() || p.over.Load()
}
