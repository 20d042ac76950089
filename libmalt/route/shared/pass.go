package shared

import (
	"math"
	"slices"

	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// pass is what the ranks do to the arrays in a sync or an allreduce that is committed:
// each folds its span of all arrays into each of them, or in a sync the rank that has decided all.
//
// Its ranks are those that had arrived, and so all that live. A rank that had died before
// the decision is among them if it had arrived: its array is still there, and counts. All
// ranks derive the same set from the words, since a dead rank stores no more.
type pass struct {
	op      reduce.Op
	number  uint64 // the clock, or ofCall | the number of the call
	ranks   []int  // ascending
	weights []float64
	idle    bool // no rank has a weight: all keep their values
	whole   int  // the rank whose span is all; negative: each has one

	arrived []int // room for ranks
}

// begin makes p the pass of that number, which d has decided.
func (p *pass) begin(r *Route, op reduce.Op, number, d uint64) {
	p.op, p.number, p.idle, p.whole = op, number, false, -1
	p.ranks, p.weights = r.all, p.weights[:0]
	call := number&ofCall != 0
	switch {
	case call:
	case d&(forAll-1) != 2*number:
		p.whole = r.rank // the word has gone on: this rank has learned that all is folded
	case d&forAll != 0:
		p.whole = int(d >> decider)
	}
	if r.o.Survives() {
		word, least := wordStep, 2*number-1
		if call {
			word, least = wordCalled, number&^ofCall
		}
		p.arrived = p.arrived[:0]
		for _, rank := range r.all {
			if r.shared.Get(rank, word) >= least {
				p.arrived = append(p.arrived, rank)
			} else if !call && r.o.View().Has(rank) {
				r.o.Adopt() // the rank that decided knew that it is dead
			}
		}
		p.ranks = p.arrived
	}
	if !call {
		p.weigh(r)
	}
}

// weigh looks at the weights, which only a sync has.
func (p *pass) weigh(r *Route) {
	same, any := true, false
	for _, rank := range p.ranks {
		weight := math.Float64frombits(r.shared.Get(rank, wordWeight))
		p.weights = append(p.weights, weight)
		same = same && weight == 1
		any = any || weight > 0
	}
	p.idle = !any && p.op.Weighted()
	if same {
		p.weights = p.weights[:0]
	}
}

// weighting is nil where all ranks weigh the same.
func (p *pass) weighting() []float64 {
	if len(p.weights) == 0 {
		return nil
	}
	return p.weights
}

// end is the word that says that a rank has folded its span, and its value then.
func (p *pass) end() (word int, folded uint64) {
	if p.number&ofCall != 0 {
		return wordReduced, p.number &^ ofCall
	}
	return wordStep, 2 * p.number
}

// folding are the ranks that have a span to fold.
func (p *pass) folding() []int {
	if part, in := slices.BinarySearch(p.ranks, p.whole); in {
		return p.ranks[part : part+1]
	}
	return p.ranks
}

// span is which bytes of the arrays rank folds.
func (r *Route) span(p *pass, rank int) (lo, hi int) {
	if p.whole == rank {
		return 0, r.bytes
	}
	part, in := slices.BinarySearch(p.ranks, rank)
	if !in || p.whole >= 0 {
		return 0, 0
	}
	cuts := (r.bytes + core.CutBytes - 1) / core.CutBytes
	at := func(part int) int { return min(r.bytes, cuts*part/len(p.ranks)*core.CutBytes) }
	return at(part), at(part + 1)
}

// fold folds the span of rank, this one or one whose heir this is, from where it has
// come. All have arrived, so their arrays, ops and weights stay as they are until the span
// is said to be folded.
func (r *Route) fold(p *pass, rank int) {
	lo, hi := r.span(p, rank)
	if p.idle {
		return
	}
	block := uint64(1)
	if rank != r.rank {
		if done := r.shared.Get(rank, wordDone); done>>blockBits == p.number {
			block += done & (1<<blockBits - 1)
		}
		lo += int(block-1) * core.BlockBytes
	}
	r.from = reduce.None
	for first := rank != r.rank; lo < hi; block++ {
		to := min(lo+core.BlockBytes, hi)
		r.srcs = r.srcs[:0]
		for _, rank := range p.ranks {
			r.srcs = append(r.srcs, r.shared.Bytes(rank)[lo:to])
		}
		switch {
		case r.o.Survives() && p.op == reduce.Sum:
			r.foldOnce(p, rank, block, lo)
		case first:
			reduce.FoldUnlike(p.op, r.o.Runs(), lo, r.srcs, p.weighting())
		default:
			r.foldBlock(p, lo)
		}
		if r.o.Survives() || explored {
			r.note(rank, wordDone, atBlock(p.number, block))
		}
		lo, first = to, false
	}
	clear(r.srcs)
	r.o.Brought(r.from, p.ranks)
}

// finish says that this rank has folded its span. The others sleep until the rank that has
// decided has folded, and then, if need be, until all have: so only that one rings, and the
// last. An exchange lets the last see that it is.
func (r *Route) finish(p *pass, decided bool) {
	word, folded := p.end()
	r.shared.Set(word, folded)
	if decided || !slices.ContainsFunc(p.ranks, func(rank int) bool { return r.shared.Get(rank, word) < folded }) {
		r.shared.Ring()
	}
}

// foldOnce is for folds that would come to something else if a block of which some arrays
// have the result already were folded again: the result goes to the spare of rank first,
// and is copied from there.
func (r *Route) foldOnce(p *pass, rank int, block uint64, lo int) {
	spare := r.spare(rank)[:len(r.srcs[0])]
	if ready := r.shared.Get(rank, wordReady); ready != atBlock(p.number, block) {
		r.foldSpare(p, lo, spare)
		r.note(rank, wordReady, atBlock(p.number, block))
	}
	for _, array := range r.srcs {
		reduce.Copy(array, spare)
	}
}

// spareAt is where the spare of an array of n bytes begins, behind its card: room for a
// block.
func spareAt(n int) int { return cardAt(n) + cardBytes }

func (r *Route) spare(rank int) []byte { return r.shared.Bytes(rank)[spareAt(r.bytes):] }

// note stores a word of rank: this one, or one whose heir this is. Nobody else does.
func (r *Route) note(rank, word int, value uint64) {
	if rank == r.rank {
		r.shared.Put(word, value)
		return
	}
	old := r.shared.Get(rank, word)
	r.shared.Swap(rank, word, old, value)
}
