package processes

import (
	"fmt"
	"math/bits"
	"slices"

	"malt/libmalt/reduce"
)

// judgeFold: the result of a fold is that of the ranks that had arrived.
func (w *witness) judgeFold(e *event, ph *planPhase) error {
	must, may, from := w.due(e, ph)
	for s := range w.ranks {
		if ph.queues() && s != w.me && w.isNew(s, w.me, e, ph) && len(w.turns[[2]int{s, int(e.Phase)}]) > 0 {
			w.judgeBlind(e)
			return nil
		}
	}
	var found []uint64
	for some := may; ; some = (some - 1) & may { // each part of may
		if w.fits(e, must|some, from) && !slices.ContainsFunc(ranksOf(may), func(s int) bool { return !w.agrees(s, from[s], has(some, s)) }) {
			found = append(found, some)
		}
		if some == 0 {
			break
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("G8: the fold of %d updates gives %+v, expected those of ranks %v, and perhaps of %v, who died in it", e.Count, e.Result, ranksOf(must), ranksOf(may))
	}
	if len(found) == 1 {
		for _, s := range ranksOf(may) {
			w.settle(s, from[s], has(found[0], s))
		}
	}
	return w.agreeOn(e, must|found[0]|1<<w.me, ph)
}

// agreeOn: in lock-step all who fold the same have the same bits.
func (w *witness) agreeOn(e *event, operands uint64, ph *planPhase) error {
	if ph.queues() || opKind(e.Op) == foldReplace {
		return nil
	}
	at := agreement{e.Clock, e.Op, operands}
	if before, known := w.bits[at]; known && before != e.Result.Sum {
		return fmt.Errorf("G8: ranks that have folded the same, of ranks %v, have different bits: %+v", ranksOf(operands), e.Result)
	}
	w.bits[at] = e.Result.Sum
	return nil
}

// fits tells whether the result of a fold is that of these senders and the rank itself.
func (w *witness) fits(e *event, senders uint64, from []*event) bool {
	inPlace := e.InPlace && e.Kind == synced
	if n := int64(bits.OnesCount64(senders)); e.Count != n && !(inPlace && e.Generation > 1) {
		return false
	}
	var operands, weights []float64
	for r := range w.ranks {
		switch {
		case r == w.me:
			operands, weights = append(operands, value(r, e.Clock)), append(weights, weight(r, e.Clock))
		case has(senders, r):
			operands, weights = append(operands, value(r, from[r].Clock)), append(weights, weight(r, from[r].Clock))
		}
	}
	if inPlace && w.weather == nil && e.Result.Odd > 0 && w.diedAt(e.Clock) {
		// The ranks' arrays were being folded when one died. Its part was folded again, in which
		// a few elements had the result already.
		return e.Result.Odd <= 64*int64(w.ranks) && e.Result.Low >= slices.Min(operands) && e.Result.High <= slices.Max(operands)
	}
	if e.Result.Odd > 0 {
		return false
	}
	op := map[opKind]reduce.Op{foldSum: reduce.Sum, foldMax: reduce.Max, foldReplace: reduce.Replace, foldMean: reduce.Mean}[opKind(e.Op)]
	if op == reduce.Replace {
		if senders == 0 {
			operands = operands[:1]
		} else { // the newest; of equally new ones that of the lowest rank
			operands = []float64{value(bits.TrailingZeros64(senders), from[bits.TrailingZeros64(senders)].Clock)}
		}
	}
	if op != reduce.Mean {
		weights = nil
	}
	for i, dt := range w.types() {
		if dt != 0 && !w.agree(e.Result.Values[i], simulated(op, dt, operands, weights)) {
			return false
		}
	}
	return true
}

// diedAt tells whether a rank died in the step of that clock.
func (q *inquest) diedAt(clock uint64) bool {
	for r := range q.ranks {
		if sent := q.sends[r][clock]; q.fell[r] && sent != nil && sent.Ended == 0 {
			return true
		}
	}
	return false
}
