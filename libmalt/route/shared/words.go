package shared

import "malt/libmalt/internal/core"

const (
	wordStep   = iota // 2e-1: arrived at clock e; 2e: has folded its span
	wordOp            // its reduce.Op; wordStep releases it
	wordWeight        // the bits of its float64 weight; wordStep releases them
	wordDone          // e<<24 | blocks of its span that are in all arrays; see below
	wordReady         // e<<24 | a block of its span of which the result is in its spare
)

// A word that all ranks swap is in another cache line than words that one rank stores
// and others load. So are the words of collective calls, which have other numbers.
const (
	wordDecision = (1 + iota) * core.LineWords // of home
	wordCalled                                 // the last call in which it has arrived
	wordReduced                                // the last call for which it has folded its span
	wordMeeting                                // as wordDecision, with the rank that decided
	wordHeir                                   // of a rank that has died: see mend.go
	words
)

// wordDone serves to repair the arrays after a death: all arrays have the average of
// each block that it counts, and some may have a part of the next block's. It holds
// until all have step >= 2e: from then on the owner may write its array. It claims
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

// decider is the first bit of a word that decides which tells who has, where the job goes
// on when ranks die.
const decider = 48

// decision is the state at clock in that word, and the word.
func (r *Route) decision(word int, clock uint64) (state, uint64) {
	d, _ := r.shared.Get(r.home(), word)
	switch at := d & (1<<decider - 1); {
	case at < 2*clock:
		return pending, d
	case at == 2*clock:
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
		if r.o.Survives() {
			decided |= uint64(r.rank) << decider
		}
		r.shared.Swap(r.home(), word, d, decided)
	}
}

// below appends to late those of ranks whose word has yet to reach a value.
func (r *Route) below(ranks []int, word int, value uint64, late []int) []int {
	for _, rank := range ranks {
		if at, _ := r.shared.Get(rank, word); at < value {
			late = append(late, rank)
		}
	}
	return late
}
