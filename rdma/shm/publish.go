package shm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

// What an announcement's text begins with, before the Spec in words: whether
// the readers share one box or have one each.
const (
	together = "one box for all readers: "
	each     = "one box for each reader: "
	partly   = "one box, also for %d readers on other machines: "
)

// The size up to which all slots of one Publish are mapped and populated together.
const (
	// Looking up the limits costs more than so little memory.
	atOnce = 256 << 10
	// The slots of a queue are all used, in turn. The collective calls have such a
	// one: by them ranks tell each other for what there was no memory.
	queueAtOnce = 2 << 20
)

// Publish announces a box; a name is free again when the box is closed.
func (t *Transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	outs, err := t.publish(together, name, s, readers, [][]int{readers})
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// PublishEach lays the boxes side by side.
func (t *Transport) PublishEach(_ context.Context, name string, s rdma.Spec, readers []int) ([]rdma.Outbox, error) {
	sets := make([][]int, len(readers))
	for i := range readers {
		sets[i] = readers[i : i+1]
	}
	return t.publish(each, name, s, readers, sets)
}

// PublishBeyond is Publish for readers of this machine, and for others to which by takes
// updates.
func (t *Transport) PublishBeyond(name string, s rdma.Spec, near, far []int, by box.Relayer) (rdma.Outbox, error) {
	outs, err := t.publishBeyond(fmt.Sprintf(partly, len(far)), name, s, near, [][]int{slices.Concat(near, far)}, by)
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// publish makes one box per set of readers and announces them together, all or
// none.
func (t *Transport) publish(kind, name string, s rdma.Spec, readers []int, sets [][]int) ([]rdma.Outbox, error) {
	return t.publishBeyond(kind, name, s, readers, sets, nil)
}

func (t *Transport) publishBeyond(kind, name string, s rdma.Spec, readers []int, sets [][]int, beyond box.Relayer) ([]rdma.Outbox, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	op := fmt.Sprintf("rank %d: Publish %s", t.Rank(), name)
	if err := t.host.CheckRanks("readers", readers); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if len(sets) == 0 {
		return nil, nil
	}
	l, err := box.NewLayout(s, len(sets[0]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if !t.takeName(name) {
		return nil, fmt.Errorf("%s: this rank has a box of that name already; close it first, or take another", op)
	}
	p := &publication{t: t, name: name, boxes: boxes{area: area{Layout: l, n: len(sets)}}, beyond: beyond}
	outs, err := p.open(kind, readers, sets)
	if err != nil {
		p.withdraw()
		return nil, fmt.Errorf("%s: %w", op, errors.Join(err, p.unmap()))
	}
	if beyond != nil {
		p.users++
		if err := beyond.Relay(outs[0].(*ends.Outbox).Box, p.end(0), len(readers), sets[0][len(readers):], p.release); err != nil {
			return nil, fmt.Errorf("%s: %w", op, errors.Join(err, p.release(), outs[0].Close()))
		}
	}
	return outs, nil
}

// publication is what the boxes of one Publish share.
type publication struct {
	boxes
	t         *Transport
	name      string
	announced *rendezvous.Announcement
	beyond    box.Relayer // nil: all readers can map it

	using sync.Mutex // box.End.Lock

	mu    sync.Mutex
	left  int // boxes that are open
	users int // of the memory: those, and who takes it beyond
}

func (p *publication) open(kind string, readers []int, sets [][]int) ([]rdma.Outbox, error) {
	f, err := p.allocate()
	if err != nil {
		return nil, err
	}
	outs := make([]*ends.Outbox, len(sets))
	for i, set := range sets {
		if outs[i], err = p.outbox(i, set); err != nil {
			f.Close()
			return nil, err
		}
	}
	p.left, p.users = len(outs), len(outs)
	p.announced, err = p.t.host.Announce(boxName(p.name), rendezvous.Region{
		Text: kind + box.Describe(p.Spec), Readers: readers, Files: []*mem.File{f},
	})
	if err != nil {
		return nil, err
	}
	result := make([]rdma.Outbox, len(outs))
	for i, o := range outs {
		result[i] = o
	}
	if err := ends.Adopt(&p.t.open, outs...); err != nil {
		return nil, err
	}
	return result, nil
}

// allocate makes and maps the memory of the boxes.
func (p *publication) allocate() (*mem.File, error) {
	f, err := p.t.host.Announced(sharedName(p.name))
	if f != nil {
		p.at, err = f.Grow(p.size())
	} else if err == nil {
		f, err = mem.NewFile("malt-box", p.size())
	}
	if err == nil {
		err = p.make(f)
	}
	if err == nil {
		err = p.t.host.Reserve(p.own)
	}
	if err != nil && f != nil {
		f.Close()
	}
	return f, err
}

// outbox is the sending end of box i.
func (p *publication) outbox(i int, readers []int) (*ends.Outbox, error) {
	o := &ends.Outbox{}
	e := p.end(i)
	e.Done = func() error {
		p.t.open.Forget(o)
		p.mu.Lock()
		p.left--
		last := p.left == 0
		p.mu.Unlock()
		if last {
			p.withdraw()
		}
		return p.release()
	}
	var err error
	o.Box, err = box.NewOutbox(e, readers, func(slot, from, to int) error {
		if len(p.slots.flat) > 0 { // populated
			return nil
		}
		if err := e.Find(slot); err != nil {
			return err
		}
		return p.t.host.Reserve(e.Slot(slot)[from:to])
	})
	return o, err
}

// end describes box i.
func (p *publication) end(i int) box.End {
	e := p.t.end(p.name, p.t.Rank(), p.Layout)
	e.Control = p.controlOf(i)
	e.Slot, e.Find = p.slots.box(p.Layout, i*p.Slots)
	if p.beyond != nil {
		e.Ring = p.beyond.Ring
		if p.Spec.Mode.Depth() > 0 {
			e.Lock = &p.using
		}
	}
	return e
}

// withdraw ends the announcement and frees the name.
func (p *publication) withdraw() {
	if p.announced != nil {
		p.announced.Withdraw()
	}
	p.t.freeName(p.name)
}

// release is called once by each user, at its end; the last gives the memory
// back.
func (p *publication) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 {
		return nil
	}
	return p.unmap()
}

func boxName(name string) string { return "box " + name }
