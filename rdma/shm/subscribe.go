package shm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
	"malt/rdma/rendezvous"
)

// Subscribe attaches to all boxes together, once the last of them is there: one
// that fails or is given up has taken nothing.
func (t *Transport) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) (_ []rdma.Inbox, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	defer rdma.During(&err, "rank %d: Subscribe %s", t.Rank(), name)
	if err := t.Host.CheckRanks("senders", senders); err != nil {
		return nil, err
	}
	if err := t.ins.Take(name, senders); err != nil {
		return nil, err
	}
	ins := make([]*ends.Inbox, len(senders))
	found := make([]found, len(senders))
	err = t.fetch(ctx, boxName(name), senders, func(i int, r rendezvous.Region) (err error) {
		found[i], err = t.find(name, s, senders[i], r)
		return err
	})
	for i := range found {
		if err == nil {
			ins[i], err = t.inbox(name, senders[i], &found[i])
		}
	}
	if err == nil {
		err = ends.Adopt(&t.open, ins...)
	}
	if err != nil {
		for i := range found {
			if found[i].area != nil {
				err = errors.Join(err, found[i].unmap())
			}
		}
		t.ins.Free(name, senders...)
		return nil, err
	}
	result := make([]rdma.Inbox, len(ins))
	for i, in := range ins {
		result[i] = in
	}
	return result, nil
}

// found is a sender's box, mapped.
type found struct {
	*area
	index int // of this rank among the box's readers
}

// find compares what a sender announced with what this rank expects, and maps it.
func (t *Transport) find(name string, s rdma.Spec, sender int, r rendezvous.Region) (f found, err error) {
	ours := box.Describe(s)
	kind, theirs, _ := strings.Cut(r.Text, ": ")
	kind += ": "
	elsewhere := 0
	if kind != together {
		if _, err := fmt.Sscanf(kind, partly, &elsewhere); err != nil || elsewhere < 0 || elsewhere > t.Size() {
			return f, fmt.Errorf("rank %d announced it as %q, which this version does not know", sender, kind)
		}
	}
	if theirs != ours {
		return f, &rdma.MismatchError{Name: name, Rank: sender, Ours: ours, Theirs: theirs}
	}
	if f.index = slices.Index(r.Readers, t.Rank()); f.index < 0 {
		return f, fmt.Errorf("rank %d announced it for ranks %v only", sender, r.Readers)
	}
	l, err := box.NewLayout(s, len(r.Readers)+elsewhere)
	if err != nil {
		return f, err
	}
	if f.area, err = t.attach(r.Files, l); err != nil {
		return f, fmt.Errorf("box of rank %d: %w", sender, err)
	}
	return f, nil
}

// inbox is the receiving end of a box that was found, and unmaps it at its own
// end.
func (t *Transport) inbox(name string, sender int, f *found) (in *ends.Inbox, err error) {
	in = &ends.Inbox{}
	e := t.end(name, sender, f.area)
	e.Done = func() error {
		t.open.Forget(in)
		t.ins.Free(name, sender)
		return f.unmap()
	}
	in.Box, err = box.NewInbox(e, f.index)
	return in, err
}

// end is what both ends of a box have in common.
func (t *Transport) end(name string, sender int, a *area) box.End {
	return box.End{
		Place: a.place(), Layout: a.Layout, Name: name, Sender: sender, Member: uint32(sender), Generation: 1,
		Bell: t.Host.BellID(t.bell), Ring: t.Host.Ring, State: t.Host.State, Meter: t.meter,
	}
}

// fetch is rendezvous.Fetch that also ends when t, which may be a sub, is closed.
func (t *Transport) fetch(ctx context.Context, name string, from []int, use func(int, rendezvous.Region) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	// What comes by socket takes long enough to sleep at once.
	p := rendezvous.Policy{Sleep: t.policy.Sleep}
	err := t.Host.Fetch(inner, t.bell, p, name, from, use)
	if err != nil && t.check() != nil {
		return rdma.ErrClosed
	}
	return err
}
