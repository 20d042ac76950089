package boxes

import (
	"slices"

	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/rdma"
)

// Survivors on several hosts settle on up to which clock a rank that is left out counts in
// lock-step, and with totals on which one of such a rank counts: see package core. Until its next gather completes, a rank keeps the box of such a
// rank, with the update that it has folded last: another rank may ask for it.

var _ core.Lockstep = (*Boxes)(nil)

// source is where the updates of rank come from; nil: it is not read.
func (b *Boxes) source(rank int) *source {
	if b.ch == nil {
		return nil
	}
	i := slices.IndexFunc(b.ch.sources, func(s source) bool { return s.rank == rank })
	if i < 0 {
		return nil
	}
	return &b.ch.sources[i]
}

// Stand implements core.Lockstep.
func (b *Boxes) Stand(rank int) (at core.Stand, ok bool) {
	if rank == b.Job.RouteRank() {
		return b.Route.Stand()
	}
	s := b.source(rank)
	if s == nil || !b.inStep() {
		return b.counting.stand(rank, s)
	}
	b.counting.keep(s) // At lets go of it
	if at.Due = b.Clock(); b.unfolds == 0 {
		at.Due++
	}
	at.Folded = s.taken
	graph := s.graph
	if b.ch.view.Has(rank) { // this rank has not gone over to the view without it yet
		graph = b.ch.graph
	}
	at.Has = graph == nil || !slices.Contains(graph.Receivers(rank, at.Due), b.Job.Rank) || s.has && s.held.Clock == at.Due
	if !at.Has {
		_, at.Has, _ = s.exactly(at.Due) // an error comes again, in the gather
	}
	return at, true
}

// Held implements core.Lockstep.
func (b *Boxes) Held(rank int, clock uint64) (u rdma.Update) {
	s, kept := b.source(rank), b.counting.kept(rank)
	switch {
	case rank == b.Job.RouteRank():
		return b.Route.Held(clock)
	case kept.Clock == clock || s == nil:
		return kept
	case s.has && s.held.Clock == clock:
		u = s.held
	default:
		u, _, _ = s.exactly(clock)
	}
	if u.Age == named {
		return rdma.Update{}
	}
	return u
}

// named is the age of an update that is for some of the receivers only, which the program has
// named: the others must not get it, and a rank that has it does not know which they are. So it
// counts where it had arrived when its sender died.
const named = 1

// adopt goes over to the newest view, in lock-step with several hosts once this rank is settled
// in it. false: o.late are to be waited for.
func (o *gathering) adopt() (bool, error) {
	b := o.b
	for {
		b.Job.Adopt()
		b.CatchUp()
		if !b.inStep() {
			return true, b.Job.Help(b.Member)
		}
		late, generation, err := b.Job.Settled(b.Member)
		switch {
		case err != nil || generation == 0:
			o.late = append(o.late[:0], late...)
			return false, err
		case generation == b.ch.view.Generation:
			return true, nil
		}
	}
}

// Settles implements core.Lockstep.
func (b *Boxes) Settles() bool {
	_, sums := b.Codec.(codec.Cumulative)
	return b.Job.Settles() && (sums || b.ch.spec.Mode == rdma.ByClock)
}

// inStep tells whether its gathers wait until this rank has settled.
func (b *Boxes) inStep() bool { return b.Job.Settles() && b.ch.spec.Mode == rdma.ByClock }

// counts is up to which clock rank counts, which is left out.
func (b *Boxes) counts(rank int) uint64 {
	clock, _ := b.Counted(rank)
	return clock
}

// given is the update of s at this clock that another rank has given this one.
func (b *Boxes) given(s *source) (u rdma.Update, ok bool) {
	if b.inStep() && !b.ch.view.Has(s.rank) {
		_, u = b.Counted(s.rank)
	}
	return u, u.Data != nil && u.Clock == b.Clock()
}
