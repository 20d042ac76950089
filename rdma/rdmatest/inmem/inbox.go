package inmem

import (
	"context"
	"fmt"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
)

// Subscribe attaches to all boxes together, once the last of them is there: one
// that fails or is given up has taken nothing.
func (t *transport) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) (_ []rdma.Inbox, err error) {
	defer rdma.During(&err, "Subscribe %s", name)
	if err := rdma.CheckPeers("senders", senders, t.rank, t.job.size); err != nil {
		return nil, err
	}
	found := make([]*publication, len(senders))
	index := make([]int, len(senders))
	var missing []int
	err = t.wait(ctx, func() (bool, error) {
		var err error
		missing, err = t.find(name, s, senders, found, index)
		return len(missing) == 0, err
	})
	if err != nil {
		if len(missing) > 0 {
			err = fmt.Errorf("waiting for ranks %v: %w", missing, err)
		}
		return nil, err
	}
	ins := make([]rdma.Inbox, len(senders))
	for i, p := range found {
		if ins[i], err = t.open1(p, index[i], name, s, senders[i]); err != nil {
			break
		}
	}
	if err == nil {
		err = ends.Adopt(&t.open, ins...)
	}
	if err != nil {
		for _, in := range ins {
			if in != nil {
				_ = in.Close()
			}
		}
		return nil, err
	}
	return ins, nil
}

// find looks all senders up, and takes their boxes if none is missing.
func (t *transport) find(name string, s rdma.Spec, senders []int, found []*publication, index []int) (missing []int, err error) {
	t.job.mu.Lock()
	defer t.job.mu.Unlock()
	for i, sender := range senders {
		if err := rdma.Gone(t.State(sender), "Subscribe "+name, sender); err != nil {
			return nil, err
		}
		p, at, err := t.job.lookup(sender, name, t.rank)
		switch {
		case err != nil:
			return nil, fmt.Errorf("of rank %d: %w", sender, err)
		case p == nil:
			missing = append(missing, sender)
		case p.spec != s:
			return nil, &rdma.MismatchError{Name: name, Rank: sender, Ours: box.Describe(s), Theirs: box.Describe(p.spec)}
		}
		found[i], index[i] = p, at
	}
	if len(missing) == 0 {
		for i, p := range found {
			p.taken[index[i]], p.open[index[i]] = true, true
		}
	}
	return missing, nil
}

// open1 attaches to one box that find has taken.
func (t *transport) open1(p *publication, index int, name string, s rdma.Spec, sender int) (rdma.Inbox, error) {
	l, err := box.NewLayout(s, len(p.readers))
	if err != nil {
		return nil, err
	}
	e := t.end(p, l, name, sender)
	var in *box.Inbox
	e.Done = func() error {
		t.job.mu.Lock()
		p.open[index] = false
		t.job.mu.Unlock()
		t.open.Forget(in)
		return nil
	}
	in, err = box.NewInbox(e, index)
	if err != nil {
		return nil, err
	}
	return in, nil
}
