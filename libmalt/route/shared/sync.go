package shared

import (
	"math"
	"time"

	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// Begin arrives.
func (r *Route) Begin(clock uint64, op reduce.Op, weight float64) bool {
	r.op, r.clock, r.state, r.late = op, clock, pending, r.late[:0]
	r.put(wordOp, uint64(op))
	r.put(wordWeight, math.Float64bits(weight))
	r.shared.Set(wordStep, 2*r.clock-1)
	return true
}

// put stores a word of this rank, unless it has that value.
func (r *Route) put(word int, value uint64) {
	if old := r.shared.Get(r.rank, word); old != value {
		r.shared.Put(word, value)
	}
}

// Step waits for a decision and, after a commit, until all ranks have folded.
func (r *Route) Step() (core.Outcome, error) {
	for r.state == pending {
		s, _ := r.decision(wordDecision, r.clock)
		if s == pending {
			if s = r.choose(); s == pending {
				return core.Underway, nil
			}
		}
		r.decideAndFold(s)
	}
	if r.state == aborted {
		return core.UseBoxes, nil
	}
	if r.late = r.unfolded(&r.syncs, r.late[:0]); len(r.late) > 0 {
		return core.Underway, nil
	}
	return core.Arrived, nil
}

func (r *Route) Late() []int { return r.late }

func (r *Route) CameLast() int { return r.last(wordDecision, r.clock) }

// choose is the decision that this rank wants: pending while it has to wait for
// another.
func (r *Route) choose() state {
	if r.o.CatchUp(); r.o.Clock()+1 != r.clock {
		return aborted // a collective call of another thread has levelled the clocks
	}
	r.late = r.late[:0]
	for _, rank := range r.all {
		if rank == r.rank {
			continue
		}
		if !r.arrived(rank) {
			if r.shared.Get(rank, wordClosed) == 0 && r.o.Awaited(rank) {
				r.late = append(r.late, rank)
				continue
			}
			_, gone := r.o.Heard(rank)
			switch wait, dead := r.o.Missing(rank, gone); {
			case wait:
				r.late = append(r.late, rank)
				continue
			case dead != nil || !r.o.Lost(rank):
				return aborted // the boxes know what to do without that rank
			case !r.arrived(rank): // now that it is known to be dead
				continue
			}
		}
		if reduce.Op(r.shared.Get(rank, wordOp)) != r.op {
			return aborted
		}
	}
	if len(r.late) > 0 {
		return pending
	}
	return committed
}

// arrived tells whether rank has come to this sync.
func (r *Route) arrived(rank int) bool {
	return r.shared.Get(rank, wordStep) >= 2*r.clock-1
}

// decideAndFold decides, unless that is done, and after a commit folds: other ranks wait for
// that.
func (r *Route) decideAndFold(want state) {
	if r.state != pending {
		return
	}
	state, d, mine := r.decide(wordDecision, r.clock, want)
	if r.state = state; state != committed {
		return
	}
	p := &r.syncs
	p.begin(r, r.op, r.clock, d)
	if p.whole < 0 || mine {
		start := time.Now()
		r.fold(p, r.rank)
		r.o.Folded(time.Since(start))
		r.finish(p, mine)
	}
}

// Scatters aborts the sync at that clock.
func (r *Route) Scatters(clock uint64) { _, _, _ = r.decide(wordDecision, clock, aborted) }

// Leave aborts, or folds. Then no rank waits for this one, and after an abort none
// writes into its array.
func (r *Route) Leave() (core.Outcome, error) {
	r.decideAndFold(aborted)
	if r.state == committed {
		return core.Underway, nil
	}
	return core.UseBoxes, nil
}
