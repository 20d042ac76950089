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

// What an announcement's text begins with, before the Spec in words: for which readers it
// is.
const (
	together = "one box for all readers: "
	partly   = "one box, also for %d readers on other machines: "
)

// Publish announces a box; a name is free again when the box is closed.
func (t *Transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	return t.publish(together, name, s, readers, nil, nil)
}

// PublishBeyond is Publish for readers of this machine, and for others to which by takes
// updates.
func (t *Transport) PublishBeyond(name string, s rdma.Spec, near, far []int, by box.Relayer) (rdma.Outbox, error) {
	return t.publish(fmt.Sprintf(partly, len(far)), name, s, near, far, by)
}

func (t *Transport) publish(kind, name string, s rdma.Spec, near, far []int, beyond box.Relayer) (_ rdma.Outbox, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	defer rdma.During(&err, "rank %d: Publish %s", t.Rank(), name)
	if err := t.Host.CheckRanks("readers", near); err != nil {
		return nil, err
	}
	l, err := box.NewLayout(s, len(near)+len(far))
	if err != nil {
		return nil, err
	}
	if !t.takeName(name) {
		return nil, errors.New("this rank has a box of that name already; close it first, or take another")
	}
	p := &publication{t: t, name: name, area: area{Layout: l}, beyond: beyond, users: 1}
	out, err := p.open(kind, near, far)
	if err != nil {
		p.withdraw()
		return nil, errors.Join(err, p.unmap())
	}
	if beyond != nil {
		p.users++
		if err := beyond.Relay(out.Box, p.end(), len(near), far, p.release); err != nil {
			return nil, errors.Join(err, p.release(), out.Close())
		}
	}
	return out, nil
}

// publication is a box of this rank.
type publication struct {
	area
	t         *Transport
	name      string
	announced *rendezvous.Announcement
	beyond    box.Relayer // nil: all readers can map it

	using sync.Mutex // box.End.Lock

	mu    sync.Mutex
	users int // of the memory: the outbox, and who takes it beyond
}

func (p *publication) open(kind string, near, far []int) (*ends.Outbox, error) {
	f, err := p.allocate()
	if err != nil {
		return nil, err
	}
	o := &ends.Outbox{}
	e := p.end()
	e.Done = func() error {
		p.t.open.Forget(o)
		p.withdraw()
		return p.release()
	}
	if o.Box, err = box.NewOutbox(e, slices.Concat(near, far), p.reserve); err != nil {
		f.Close()
		return nil, err
	}
	p.announced, err = p.t.Host.Announce(boxName(p.name), rendezvous.Region{
		Text: kind + box.Describe(p.Spec), Readers: near, Files: []*mem.File{f},
	})
	if err != nil {
		return nil, err
	}
	return o, ends.Adopt(&p.t.open, o)
}

// allocate makes and maps the memory of the box.
func (p *publication) allocate() (*mem.File, error) {
	f, err := p.t.Host.Announced(sharedName(p.name))
	if f != nil {
		p.at, err = f.Grow(p.size())
	} else if err == nil {
		f, err = mem.NewFile("malt-box", p.size())
	}
	if err == nil {
		err = p.make(f)
	}
	if err == nil {
		err = p.t.Host.Reserve(p.own)
	}
	if err != nil && f != nil {
		f.Close()
	}
	return f, err
}

// reserve is for box.NewOutbox.
func (p *publication) reserve(slot, from, to int) error {
	if len(p.slots.flat) > 0 { // populated
		return nil
	}
	if err := p.slots.find(slot); err != nil {
		return err
	}
	return p.t.Host.Reserve(p.slots.slot(slot)[from:to])
}

// end describes the box.
func (p *publication) end() box.End {
	e := p.t.end(p.name, p.t.Rank(), &p.area)
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

// release is called once by each user, at its end; the last gives the memory back.
func (p *publication) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 {
		return nil
	}
	return p.unmap()
}

func boxName(name string) string { return "box " + name }
