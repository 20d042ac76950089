package mixed

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/membership"
	"malt/rdma/vote"
)

// Voting is what the hosts of a job need to decide who takes part, when a rank dies.
type Voting struct {
	Job         vote.Job
	Unreachable time.Duration // for how long a host may be silent that others hear
}

// surviving is a transport of a job that can go on when ranks die: the hosts decide who takes
// part (package membership). The near half has what this host has promised, accepted and
// learned. The far half carries the votes. Each tells of the deaths that it finds.
type surviving struct {
	*transport
	voting  *Voting                             // nil for a sub
	members *atomic.Pointer[membership.Members] // from Survive on; also of the subs
}

var _ rdma.Viewed = (*surviving)(nil)

// Survive implements rdma.Viewed. It is called once.
func (t *surviving) Survive(least int) {
	m := membership.New(membership.Config{Job: t.voting.Job, Rank: t.Rank(), Unreachable: t.voting.Unreachable}, t.near.Ballots(), others{t.near, t.far})
	t.members.Store(m)
	t.near.Survive(least)
	t.far.Survive(m)
	m.Start()
}

// Witness votes for this host, which has no ranks, until none of the job is left, or the others
// have gone on without this one. A rank that says that it has failed takes part no more.
func (t *surviving) Witness() error {
	t.Survive(1)
	m := t.members.Load()
	err := t.Wait(context.Background(), func() bool {
		for rank := range t.voting.Job.Ranks() {
			if m.Out() == nil && m.Has(rank) && !t.far.Gone(rank) && !t.far.Said(rank) {
				return false
			}
		}
		return true
	})
	return cmp.Or(err, m.Out())
}

// View implements rdma.Viewed.
func (t *surviving) View() rdma.View { return t.near.View() }

// Out implements rdma.Viewed.
func (t *surviving) Out() error {
	if m := t.members.Load(); m != nil {
		return m.Out()
	}
	return nil
}

// Stuck implements rdma.Viewed.
func (t *surviving) Stuck() (why error, final bool) {
	if m := t.members.Load(); m != nil {
		return m.Stuck()
	}
	return nil, false
}

// Confirm implements rdma.Viewed.
func (t *surviving) Confirm(ctx context.Context) rdma.Answer {
	if m := t.members.Load(); m != nil {
		return m.Confirm(ctx)
	}
	return rdma.Known
}

// Expel implements rdma.Viewed.
func (t *surviving) Expel(rank int) error {
	if t.far.Reaches(rank) {
		return say.Errorf(rdma.ErrNotSupported, "rank %d is on another host", rank).Try("Kill its process there.")
	}
	return t.near.Expel(rank)
}

func (t *surviving) Sub() (rdma.Transport, error) {
	s, err := t.sub()
	if err != nil {
		return nil, err
	}
	return &surviving{transport: s, members: t.members}, nil
}

// Close has this rank vote no more before others can take it to have left.
func (t *surviving) Close() error {
	if m := t.members.Load(); m != nil && t.voting != nil {
		m.Close()
	}
	return t.transport.Close()
}

// others is what membership needs to know of other hosts.
type others struct {
	near Near
	far  Far
}

func (n others) Post(peer int, k vote.Kind, arg uint32, body []byte) { n.far.Post(peer, k, arg, body) }
func (n others) Doubted(peer int) bool                               { return n.far.Doubted(peer) }
func (n others) Gone(peer int) bool                                  { return n.far.Gone(peer) }
func (n others) Left(peer int) (uint64, bool)                        { return n.far.Left(peer) }

// Review also has the waits of this rank look again.
func (n others) Review() {
	n.far.Review()
	n.near.RingBells()
}
