package inmem

import (
	"context"
	"slices"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
)

func (t *transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (_ rdma.Outbox, err error) {
	defer rdma.During(&err, "Publish %s", name)
	if err := rdma.CheckPeers("readers", readers, t.rank, t.job.size); err != nil {
		return nil, err
	}
	l, err := box.NewLayout(s, len(readers))
	if err != nil {
		return nil, err
	}
	control, err := heap(l.ControlBytes)
	if err != nil {
		return nil, err
	}
	p := &publication{
		spec: s, readers: slices.Clone(readers), control: control, slots: make([][]byte, l.Slots),
		taken: make([]bool, len(readers)), open: make([]bool, len(readers)),
	}
	e := t.end(p, l, name, t.rank)
	var out *box.Outbox
	e.Done = func() error {
		t.job.unpublish(p)
		t.open.Forget(out)
		return nil
	}
	out, err = box.NewOutbox(e, readers, func(slot, from, _ int) (err error) {
		if from == 0 {
			p.slots[slot], err = heap(l.Stride)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := ends.Adopt(&t.open, out); err != nil {
		return nil, err
	}
	if err := t.job.publish(t.rank, name, p); err != nil {
		t.open.Forget(out)
		return nil, err
	}
	for _, r := range readers {
		t.job.bells.RingOwner(r)
	}
	return out, nil
}

// end is what both ends of p have in common, seen from t.
func (t *transport) end(p *publication, l box.Layout, name string, sender int) box.End {
	return box.End{
		Place:  box.Place{Control: p.control, Slot: p.slot},
		Layout: l, Name: name, Sender: sender, Member: uint32(sender),
		Bell: t.bellID, Ring: t.job.bells.Ring, State: t.job.state, Meter: t.meter,
	}
}
