package shared

import "malt/libmalt/internal/core"

const (
	wordStep   = iota // 2e-1: arrived at clock e; 2e: has folded its span
	wordOp            // its reduce.Op; wordStep releases it
	wordWeight        // the bits of its float64 weight; wordStep releases them
	wordClosed        // 1: it has closed the vector
)

// A word that all ranks swap is in another cache line than words that one rank stores
// and others load, and those in another one than words that nobody looks at while all live.
// So are the words of collective calls, which have other numbers.
const (
	wordDecision = (1 + iota) * core.LineWords // of home, with the rank that has decided
	wordCalled                                 // the last call in which it has arrived
	wordReduced                                // the last call for which it has folded its span
	wordMeeting                                // as wordDecision
	wordHeir                                   // of a rank that has died: see mend.go
	wordDone                                   // e<<24 | blocks of its span that are in all arrays; see below
	words        = wordReady + 1

	wordReady = wordDone + 1 // e<<24 | a block of its span of which the result is in its spare
)

// wordDone serves to repair the arrays after a death, where the job goes on: all arrays have
// the average of each block that it counts, and some may have a part of the next block's. It
// holds until all spans are folded: from then on the owner may write its array. It claims
// nothing if there was nothing to fold.
//
// ofCall in it says that the number is that of a collective call.
const ofCall = 1 << 39

// blockBits are those of wordDone and wordReady that tell a block.
const blockBits = 24

func atBlock(number, block uint64) uint64 { return number<<blockBits | min(block, 1<<blockBits-1) }

// state is that of a sync or call, as a word of home has it.
type state int

const (
	pending   state = iota
	committed       // in place
	aborted         // by boxes, or by messages
)

// A word that decides has the rank that has, from the bit decider on, and below forAll the clock.
const (
	decider = 48
	forAll  = 1 << 47 // that rank folds the whole arrays
)

// decision is the state at clock in that word, and the word. A commit of which this rank has
// yet to learn may be under a later abort: then wordStep says so (let).
func (r *Route) decision(word int, clock uint64) (state, uint64) {
	d := r.shared.Get(r.home(), word)
	switch at := d & (forAll - 1); {
	case at < 2*clock:
		return pending, d
	case at == 2*clock:
		return committed, d
	case at > 2*clock+1 && word == wordDecision && r.shared.Get(r.rank, wordStep) == 2*clock:
		return committed, d
	}
	return aborted, d
}

// last is the rank that has committed at clock, as only the last to arrive can, or one that looked
// just then; negative: none has, or the word has gone on.
func (r *Route) last(word int, clock uint64) int {
	if d := r.shared.Get(r.home(), word); d&(forAll-1) == 2*clock {
		return int(d >> decider)
	}
	return -1
}

// decide ends the pending state at clock: want, unless another rank, or this one
// before, has decided otherwise; d is the word then. mine: this call has decided. Then the others are
// to be rung after a commit once this rank has folded, of long arrays also at once.
func (r *Route) decide(word int, clock uint64, want state) (s state, d uint64, mine bool) {
	decided := uint64(r.rank)<<decider | 2*clock
	if want == aborted {
		decided++
	} else if r.small && word == wordDecision {
		decided |= forAll
	}
	for {
		s, d := r.decision(word, clock)
		if s != pending {
			return s, d, false
		}
		if want == aborted {
			r.let()
		}
		if r.shared.Swap(r.home(), word, d, decided) {
			if want == aborted || r.long {
				r.shared.Ring()
			}
			return want, decided, true
		}
	}
}

// let has ranks that have yet to learn that the last sync was folded by the rank that decided
// learn it from their own words, before the decision about a later one hides that. Such a rank
// may still be waiting, or have died.
func (r *Route) let() {
	p := &r.syncs
	arrived, folded := 2*p.number-1, 2*p.number
	if p.whole < 0 || r.shared.Get(p.whole, wordStep) < folded {
		return
	}
	for _, rank := range p.ranks {
		if r.shared.Get(rank, wordStep) == arrived {
			r.shared.Swap(rank, wordStep, arrived, folded)
		}
	}
}

// below appends to late those of ranks whose word has yet to reach a value.
func (r *Route) below(ranks []int, word int, value uint64, late []int) []int {
	for _, rank := range ranks {
		if r.shared.Get(rank, word) < value {
			late = append(late, rank)
		}
	}
	return late
}
