package shared

import "malt/libmalt/internal/core"

const (
	wordStep   = iota // 2e-1: arrived at clock e; 2e: has folded its span
	wordOp            // its reduce.Op; wordStep releases it
	wordWeight        // the bits of its float64 weight; wordStep releases them
	wordDone          // e<<24 | blocks of its span that are in all arrays; see below
)

// A word that all ranks swap is in another cache line than words that one rank stores
// and others load. So are the words of collective calls, which have other numbers.
const (
	wordDecision = (1 + iota) * core.LineWords // of rank 0
	wordCalled                                 // the last call in which it has arrived
	wordReduced                                // the last call for which it has folded its span
	wordMeeting                                // as wordDecision
	words
)

// wordDone serves to repair the arrays after a death: all arrays have the average of
// each block that it counts, and some may have a part of the next block's. It holds
// until all have step >= 2e: from then on the owner may write its array. It claims
// nothing if there was nothing to fold.
//
// ofCall in it says that the number is that of a collective call.
const ofCall = 1 << 39

// ranks are those of the view.
func (r *Route) ranks() []int { return r.o.View().Ranks }

// span is which bytes of the arrays rank folds.
func (r *Route) span(rank int) (lo, hi int) {
	part, of := r.o.View().Part(rank)
	cuts := (r.bytes + core.CutBytes - 1) / core.CutBytes
	at := func(part int) int { return min(r.bytes, cuts*part/of*core.CutBytes) }
	return at(part), at(part + 1)
}

// state is that of a sync or call, as a word of rank 0 has it.
type state int

const (
	pending   state = iota
	committed       // in place
	aborted         // by boxes, or by messages
)

// decision is the state at clock in that word, and the word.
func (r *Route) decision(word int, clock uint64) (state, uint64) {
	d, _ := r.shared.Get(0, word)
	switch {
	case d < 2*clock:
		return pending, d
	case d == 2*clock:
		return committed, d
	}
	return aborted, d
}

// decide ends the pending state at clock: want, unless another rank, or this one
// before, has decided otherwise.
func (r *Route) decide(word int, clock uint64, want state) state {
	for {
		s, d := r.decision(word, clock)
		if s != pending {
			return s
		}
		decided := 2 * clock
		if want == aborted {
			decided++
		}
		r.shared.Swap(0, word, d, decided)
	}
}

// below appends to late the ranks whose word has yet to reach a value.
func (r *Route) below(word int, value uint64, late []int) []int {
	for _, rank := range r.ranks() {
		if at, _ := r.shared.Get(rank, word); at < value {
			late = append(late, rank)
		}
	}
	return late
}
