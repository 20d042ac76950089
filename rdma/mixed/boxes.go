package mixed

import (
	"context"
	"errors"
	"slices"

	"malt/rdma"
)

// Publish has the far half relay the box to readers elsewhere.
func (t *transport) Publish(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	near, far := t.split(readers)
	switch {
	case len(far) == 0:
		return t.near.Publish(ctx, name, s, near)
	case len(near) == 0:
		return t.far.Publish(ctx, name, s, far)
	}
	return t.near.PublishBeyond(name, s, near, far, t.far)
}

// dead is the death of one of ranks, if there was any.
func (t *transport) dead(ranks []int) error {
	for _, r := range ranks {
		if err := t.State(r); err != nil && !errors.Is(err, rdma.ErrLeft) {
			return err
		}
	}
	return nil
}

// takeAgain is what the last call of that name has kept, of these senders. It closes boxes
// that their senders have closed since: there may be others of the same name.
func (t *transport) takeAgain(name string, senders []int) (kept []rdma.Inbox, err error) {
	t.mu.Lock()
	all := t.taken[name]
	delete(t.taken, name)
	t.mu.Unlock()
	for _, in := range all {
		if _, gone := in.Clock(); gone == nil && slices.Contains(senders, in.From()) {
			kept = append(kept, in)
		} else {
			err = errors.Join(err, in.Close())
		}
	}
	return kept, err
}

// Subscribe takes the boxes of far senders last, without waiting: what fails or
// is given up has taken nothing. If a far sender goes in that moment, those of near ones are
// kept for the next call of the same name: a box can be taken once, and the job may go on.
func (t *transport) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	near, far := t.split(senders)
	if err := t.far.Await(ctx, name, s, far, func() error { return t.dead(near) }); err != nil {
		return nil, err
	}
	here, err := t.takeAgain(name, near)
	if err != nil {
		return nil, err
	}
	more, err := t.near.Subscribe(ctx, name, s, slices.DeleteFunc(near, func(r int) bool {
		return slices.ContainsFunc(here, func(in rdma.Inbox) bool { return in.From() == r })
	}))
	here = append(here, more...)
	var there []rdma.Inbox
	if err == nil {
		there, err = t.far.Subscribe(ctx, name, s, far)
	}
	if err != nil {
		t.mu.Lock()
		t.taken[name] = here
		t.mu.Unlock()
		return nil, err
	}
	from := make(map[int]rdma.Inbox, len(senders))
	for _, in := range append(here, there...) {
		from[in.From()] = in
	}
	all := make([]rdma.Inbox, len(senders))
	for i, r := range senders {
		all[i] = from[r]
	}
	return all, nil
}
