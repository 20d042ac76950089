package boxes

import (
	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// Of totals the newest of each sender counts, until a newer one has come: its slot stays
// pinned from one gather to the next, and is copied only where it cannot stay. Those of
// another era are as if they had not come: there the same changes are part of the start.

// total takes the newest total of a sender, in lock-step that of this clock: so all ranks have
// the same ones. A rank that is behind is away, and what it sends when it is back counts at
// its next clock, unless it is dead: then all find the same.
func (b *Boxes) total(src *source) (err error) {
	clock, _ := src.inbox.Clock() // before the look: the total is at least so new
	src.at = max(clock, b.level)
	own := b.Clock()
	var u rdma.Update
	var ok bool
	switch {
	case b.ch.mode.Rule.Boxes() == rdma.Newest:
		u, ok, err = src.inbox.Next()
	case clock == own || clock == own+1:
		u, ok, err = src.inbox.At(own)
	case clock > own || !b.ch.view.Has(src.rank): // while this rank was away; and a newer total holds the older one
		b.keep(src) // At lets go of it
		u, ok, err = src.inbox.At(clock)
	}
	if !ok || err != nil {
		return err
	}
	switch src.held, src.has = u, true; {
	case u.Tag > b.era:
		src.release()
		return say.Errorf(core.ErrState, "%s: rank %d counts no changes of this rank any more", b.Called("gather"), src.rank).
			In(b.Called("gather")).At("it has completed a collective call of the vector, which this rank gave up").
			Try(`Call broadcast() or allreduce("mean") on all ranks: from there changes count again.`)
	case u.Tag < b.era:
		src.release()
	default:
		src.at = max(src.at, u.Clock)
	}
	return nil
}

// keep copies the held total and lets go of it.
func (b *Boxes) keep(src *source) {
	if b.totals != nil && src.has {
		b.totals.Keep(src.rank, src.held.Data)
		src.release()
	}
}

func (b *Boxes) keepAll() {
	for i := range b.ch.sources {
		b.keep(&b.ch.sources[i])
	}
}

// Age is how many clocks of the rank that was farthest behind the last gather lacked, of
// those that are not away. Only totals have it.
func (b *Boxes) Age() uint64 { return b.old }

// aged is called where all totals of a gather have been taken.
func (b *Boxes) aged(r rule.Rule) {
	b.old = 0
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if b.totals != nil && b.ch.view.Has(src.rank) && src.at < b.Clock() && !r.Waits(b.Clock(), src.at) { // else it was away
			_, gone := src.inbox.Clock()
			if standing, _ := b.Job.Standing(src.rank, gone); rule.About(standing) == rule.Wait {
				b.old = max(b.old, b.Clock()-src.at)
			}
		}
	}
}

// Share is what this rank adds to a sum over all ranks, and since which call.
func (b *Boxes) Share() ([]byte, uint64) {
	if b.totals == nil {
		return b.Data, 0
	}
	return b.totals.Share(), b.era
}
