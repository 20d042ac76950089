package shm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
	"malt/rdma/membership"
	"malt/rdma/rendezvous"
)

// rank is what a rank's transport and its subs have in common. What the Host knows of the ranks and
// their deaths is a Transport's answer, too.
type rank struct {
	*rendezvous.Host
	meter  *box.Meter
	memory memory
	policy rendezvous.Policy
	ins    ends.Sources
	holds  holds

	mu      sync.Mutex
	bells   [rendezvous.Bells]bool // which are somebody's
	outs    map[string]bool        // names of boxes that are open
	pending map[string]*words      // Words that did not come about (yet), by name
}

// Transport is one rank with one doorbell; Sub makes another one of the same
// rank.
type Transport struct {
	*rank
	bell   int
	parent *Transport      // nil but for a sub
	life   context.Context // ends with Close
	cancel context.CancelFunc
	open   ends.Set // boxes, words and subs
	left   atomic.Bool
}

var _ interface {
	rdma.Replacing
	rdma.Counted
	rdma.Connected
	rdma.Cored
} = (*Transport)(nil)

// Open joins the job and returns when all ranks have arrived: rendezvous.Join
// says how it fails.
func Open(ctx context.Context, c rendezvous.Config) (*Transport, error) {
	h, err := rendezvous.Join(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &rank{
		Host: h, meter: box.NewMeter(c.Size), policy: policyFor(len(h.Members()), coresOf(h), len(h.Members()) < c.Size),
		outs: map[string]bool{}, pending: map[string]*words{},
	}
	r.bells[0] = true
	return newTransport(r, 0, nil), nil
}

func newTransport(r *rank, bell int, parent *Transport) *Transport {
	t := &Transport{rank: r, bell: bell, parent: parent}
	t.life, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *Transport) Name() string { return "shm" }
func (t *Transport) Near() []int  { return t.Host.Members() }

// Out and what follows implement rdma.Viewed.
func (t *Transport) Out() error                          { return nil }
func (t *Transport) Stuck() (error, bool)                { return nil, false }
func (t *Transport) Confirm(context.Context) rdma.Answer { return rdma.Known }

func (t *Transport) Expel(rank int) error { return t.Host.Kill(rank) }

// Ballots is the page of this machine, where the ranks of a job are on several
// (rendezvous.Config.Hosts).
func (t *Transport) Ballots() membership.Home { return t.Host.Ballots() }

func (t *Transport) Traffic(peer int) rdma.Traffic { return t.meter.Traffic(peer) }

// Sub takes one of the rank's other doorbells.
func (t *Transport) Sub() (rdma.Transport, error) {
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	for bell, taken := range r.bells {
		if taken {
			continue
		}
		s := newTransport(r, bell, t)
		if err := ends.Adopt(&t.open, s); err != nil {
			s.cancel()
			return nil, fmt.Errorf("rank %d: Sub: %w", t.Rank(), err)
		}
		r.bells[bell] = true
		return s, nil
	}
	return nil, fmt.Errorf("rank %d: all %d doorbells are in use; close a Sub first", t.Rank(), rendezvous.Bells)
}

// Close closes what is open, and then the rank: whoever sees that it has left
// sees that its boxes have.
func (t *Transport) Close() error {
	if !t.left.CompareAndSwap(false, true) {
		return nil
	}
	errs := []error{t.CloseEnds()}
	if t.parent != nil {
		t.parent.open.Forget(t)
		t.rank.mu.Lock()
		t.bells[t.bell] = false
		t.rank.mu.Unlock()
		return errors.Join(errs...)
	}
	errs = append(errs, t.Host.Close())
	t.rank.mu.Lock()
	defer t.rank.mu.Unlock()
	for _, w := range t.pending {
		if w != nil {
			errs = append(errs, w.unmap())
		}
	}
	t.pending = nil
	return errors.Join(errs...)
}

// CloseEnds closes what is open; nothing can be opened any more. The rank still
// takes part.
func (t *Transport) CloseEnds() error {
	open, ok := t.open.Shut()
	if !ok {
		return nil
	}
	t.cancel()
	var errs []error
	for _, c := range open {
		errs = append(errs, c.Close())
	}
	t.Wake()
	return errors.Join(errs...)
}

// BellID is the number of the doorbell at which this transport waits. RingBell
// rings that of any rank of the machine, RingBells all of this rank and its subs.
func (t *Transport) BellID() uint64     { return t.Host.BellID(t.bell) }
func (t *Transport) RingBell(id uint64) { t.Host.Ring(id) }
func (t *Transport) RingBells()         { t.Host.RingOwn() }

// check fails when t is closed.
func (t *Transport) check() error {
	if err := t.open.Check(); err != nil {
		return fmt.Errorf("rank %d: %w", t.Rank(), err)
	}
	return nil
}
