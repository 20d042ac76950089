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
	if old, _ := r.shared.Get(r.rank, word); old != value {
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
	if r.late = r.below(wordStep, 2*r.clock, r.late[:0]); len(r.late) > 0 {
		return core.Underway, nil
	}
	return core.Arrived, nil
}

func (r *Route) Late() []int { return r.late }

// choose is the decision that this rank wants: pending while it has to wait for
// another.
func (r *Route) choose() state {
	if r.o.CatchUp(); r.o.Clock()+1 != r.clock {
		return aborted // a collective call of another thread has levelled the clocks
	}
	r.late = r.late[:0]
	for _, rank := range r.ranks() {
		if rank == r.rank {
			continue
		}
		if at, _ := r.shared.Get(rank, wordStep); at >= 2*r.clock-1 {
			if op, _ := r.shared.Get(rank, wordOp); reduce.Op(op) != r.op {
				return aborted
			}
			continue
		}
		_, gone := r.o.Heard(rank)
		if wait, dead := r.o.Missing(rank, gone); dead != nil || !wait {
			return aborted // the boxes know what to do without that rank
		}
		r.late = append(r.late, rank)
	}
	if len(r.late) > 0 {
		return pending
	}
	return committed
}

// decideAndFold decides, unless that is done, and after a commit folds: other ranks wait for
// that.
func (r *Route) decideAndFold(want state) {
	if r.state == pending {
		if r.state = r.decide(wordDecision, r.clock, want); r.state == committed {
			r.fold()
		}
	}
}

// Scatters aborts the sync at that clock.
func (r *Route) Scatters(clock uint64) { r.decide(wordDecision, clock, aborted) }

// Leave aborts, or folds. Then no rank waits for this one, and after an abort none
// writes into its array.
func (r *Route) Leave() (core.Outcome, error) {
	r.decideAndFold(aborted)
	if r.state == committed {
		return core.Underway, nil
	}
	return core.UseBoxes, nil
}

// fold folds this rank's span. All have arrived, so their arrays, ops and weights stay
// as they are until this rank says that it has folded.
func (r *Route) fold() {
	start := time.Now()
	r.weights = r.weights[:0]
	same, any := true, false
	for _, rank := range r.ranks() {
		bits, _ := r.shared.Get(rank, wordWeight)
		weight := math.Float64frombits(bits)
		r.weights = append(r.weights, weight)
		same = same && weight == 1
		any = any || weight > 0
	}
	switch {
	case same:
		r.foldSpan(r.op, r.clock, nil)
	case any || !r.op.Weighted(): // else all keep their values
		r.foldSpan(r.op, r.clock, r.weights)
	}
	r.o.Folded(time.Since(start))
	r.shared.Set(wordStep, 2*r.clock)
}

// foldSpan folds this rank's span of all arrays into each of them. number is what
// wordDone says besides.
func (r *Route) foldSpan(op reduce.Op, number uint64, weights []float64) {
	lo, hi := r.span(r.rank)
	for block := uint64(1); lo < hi; block++ {
		to := min(lo+core.BlockBytes, hi)
		r.srcs = r.srcs[:0]
		for _, rank := range r.ranks() {
			r.srcs = append(r.srcs, r.shared.Bytes(rank)[lo:to])
		}
		reduce.FoldTogether(op, r.o.Runs(), lo, r.srcs, weights)
		r.shared.Put(wordDone, number<<24|min(block, 1<<24-1))
		lo = to
	}
	clear(r.srcs)
}
