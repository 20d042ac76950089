package boxes

import (
	"cmp"
	"context"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// awaiting is a gather that folds nothing: it waits for an update that the next one can fold.
type awaiting struct{ gathering }

// Await waits until an update has come that no gather has folded, until none can come, or until
// the time of ctx is up, which is not an error.
func (b *Boxes) Await(ctx context.Context) error {
	o := &b.awaiting
	return b.Run(ctx, false, o, func() error { return o.start(b) })
}

func (o *awaiting) start(b *Boxes) error {
	if r := b.ch.mode.Rule; r.Boxes() != rdma.Newest {
		return say.Errorf(core.ErrUnsupported, "%s: wait= does not go with consistency=%s", b.Called("gather"), r).
			In(b.Called("gather")).At("there each gather waits for what it folds").
			Try("Leave wait= out, or make the vector with consistency=async or ssp:2.")
	}
	return o.gathering.start(b)
}

func (o *awaiting) Step() (bool, error) {
	done, err := o.look()
	if done || err != nil {
		o.GiveUp()
	} else {
		o.b.Job.Marks.Note(core.InGather, o.b.ID, o.b.Clock())
	}
	return done, err
}

// look takes what has come, and keeps it for the gather. That also finds what comes from a rank
// between the look at its box and the one at whether it has gone.
func (o *awaiting) look() (bool, error) {
	b := o.b
	if _, err := o.adopt(); err != nil {
		return false, err
	}
	if b.replay != nil {
		if _, more := b.replay.Next(); more {
			return true, nil // the gather waits for what it has folded then
		}
	}
	o.late = o.late[:0]
	var dead error
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if err := b.counting.take(&o.gathering, src); err != nil {
			return false, err
		}
		if src.has && b.counting.fresh(src.held.Seq, src.read) {
			return true, nil
		}
		if !src.sends {
			continue
		}
		_, gone := src.inbox.Clock()
		standing, death := b.Job.Standing(src.rank, gone)
		if dead = cmp.Or(dead, death); rule.About(standing) == rule.Wait {
			o.late = append(o.late, src.rank)
		}
	}
	return len(o.late) == 0 && dead == nil, dead
}

// Elapses implements core.Elapsing.
func (o *awaiting) Elapses() {}
