package inmem

import (
	"context"
	"fmt"
	"slices"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
)

func (t *transport) Publish(_ context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	out, err := t.publish(name, s, [][]int{readers})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (t *transport) PublishEach(_ context.Context, name string, s rdma.Spec, readers []int) ([]rdma.Outbox, error) {
	each := make([][]int, len(readers))
	for i, r := range readers {
		each[i] = []int{r}
	}
	return t.publish(name, s, each)
}

// publish makes one box per set of readers, and announces all or none.
func (t *transport) publish(name string, s rdma.Spec, sets [][]int) ([]rdma.Outbox, error) {
	op := fmt.Sprintf("Publish %s", name)
	all := slices.Concat(sets...)
	if err := rdma.CheckPeers("readers", all, t.rank, t.job.size); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	pubs := make([]*publication, len(sets))
	outs := make([]rdma.Outbox, len(sets))
	for i, readers := range sets {
		l, err := box.NewLayout(s, len(readers))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		control, err := heap(l.ControlBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
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
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		pubs[i], outs[i] = p, out
	}
	if err := ends.Adopt(&t.open, outs...); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := t.job.publish(t.rank, name, pubs); err != nil {
		for _, o := range outs {
			t.open.Forget(o)
		}
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	for _, r := range all {
		t.job.bells.RingOwner(r)
	}
	return outs, nil
}

// end is what both ends of p have in common, seen from t.
func (t *transport) end(p *publication, l box.Layout, name string, sender int) box.End {
	return box.End{
		Place:  box.Place{Control: p.control, Slot: p.slot},
		Layout: l, Name: name, Sender: sender, Member: uint32(sender),
		Bell: t.bellID, Ring: t.job.bells.Ring, State: t.job.state, Meter: t.meter,
	}
}
