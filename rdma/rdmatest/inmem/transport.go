package inmem

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/bell"
	"malt/rdma/internal/ends"
)

// transport is one rank with one doorbell; Sub makes another one of the same
// rank.
type transport struct {
	job    *job
	rank   int
	bell   *bell.Bell
	bellID uint64
	meter  *box.Meter
	parent *transport // nil but for a Sub

	open ends.Set // boxes, words and subs

	mu     sync.Mutex
	blocks map[*byte]struct{} // of Shared, for Unmap to know
}

var _ rdma.Viewed = (*transport)(nil)

// New returns the transports of n ranks in this process, by rank. n below 1 is
// taken as 1.
func New(n int) []rdma.Transport {
	return NewHosts(make([]int, max(n, 1))...)
}

// NewHosts is New for ranks on several hosts: host[r] is where rank r is. Only
// those of one host can share memory.
func NewHosts(host ...int) []rdma.Transport {
	n := len(host)
	j := &job{size: n, near: make([][]int, n), boxes: map[boxName]*publication{}, words: map[string]*wordSet{}, ranks: make([]rankState, n)}
	for rank := range host {
		for peer := range host {
			if host[peer] == host[rank] {
				j.near[rank] = append(j.near[rank], peer)
			}
		}
	}
	everyone := rdma.Everyone(n)
	j.view.Store(&everyone)
	all := make([]rdma.Transport, n)
	for rank := range all {
		all[rank] = newTransport(j, rank, box.NewMeter(n), nil)
	}
	return all
}

func newTransport(j *job, rank int, m *box.Meter, parent *transport) *transport {
	b, id := j.bells.Add(rank)
	return &transport{job: j, rank: rank, bell: b, bellID: id, meter: m, parent: parent, blocks: map[*byte]struct{}{}}
}

func (t *transport) Name() string { return "inmem" }
func (t *transport) Rank() int    { return t.rank }
func (t *transport) Size() int    { return t.job.size }
func (t *transport) Near() []int  { return t.job.near[t.rank] }

// Wait also ends when this transport is closed.
func (t *transport) Wait(ctx context.Context, step func() bool) error {
	return t.open.Wait(ctx, t.rank, t.bell, step)
}

// wait is Wait that also ends when step fails.
func (t *transport) wait(ctx context.Context, step func() (bool, error)) error {
	var failed error
	err := t.Wait(ctx, func() (ok bool) {
		ok, failed = step()
		return ok || failed != nil
	})
	if failed != nil {
		err = fmt.Errorf("rank %d: %w", t.rank, failed)
	}
	return err
}

func (t *transport) Wake() { t.bell.Ring() }

func (t *transport) Sub() (rdma.Transport, error) {
	s := newTransport(t.job, t.rank, t.meter, t)
	if err := ends.Adopt(&t.open, s); err != nil {
		return nil, fmt.Errorf("rank %d: Sub: %w", t.rank, err)
	}
	return s, nil
}

func (t *transport) State(peer int) error {
	if peer < 0 || peer >= t.job.size {
		return fmt.Errorf("no rank %d among %d", peer, t.job.size)
	}
	err := t.job.state(peer)
	if dead, ok := err.(*rdma.PeerError); ok {
		return dead.Heard(peer, t.rank, t.job.size)
	}
	return err
}

func (t *transport) Abort(why *rdma.PeerError) { t.job.finish(t.rank, why) }

// Kill ends the rank of t as the kernel ends a process: it tells nobody.
func Kill(t rdma.Transport) {
	tr := t.(*transport)
	tr.job.kill(tr.rank)
}

func (t *transport) Survive(least int) { t.job.least.Store(int64(max(least, 1))) }
func (t *transport) View() rdma.View   { return *t.job.view.Load() }

func (t *transport) Out() error                          { return nil }
func (t *transport) Stuck() (error, bool)                { return nil, false }
func (t *transport) Confirm(context.Context) rdma.Answer { return rdma.Known }

func (t *transport) Expel(rank int) error {
	return fmt.Errorf("rank %d is in this process: %w", rank, rdma.ErrNotSupported)
}

func (t *transport) Traffic(peer int) rdma.Traffic { return t.meter.Traffic(peer) }

// Close closes what is open, and then the rank: whoever sees that it has left
// sees that its boxes have.
func (t *transport) Close() error {
	open, ok := t.open.Shut()
	if !ok {
		return nil
	}
	var errs []error
	for _, c := range open {
		errs = append(errs, c.Close())
	}
	if t.parent == nil {
		t.job.finish(t.rank, rdma.ErrLeft)
	} else {
		t.parent.open.Forget(t)
	}
	t.bell.Ring()
	return errors.Join(errs...)
}
