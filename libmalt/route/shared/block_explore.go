//go:build explore

package shared

import (
	"bytes"

	"malt/libmalt/reduce"
)

// explored: wordDone is compared with the arrays at every step, whether or not ranks mend.
const explored = true

// foldBlock folds r.srcs, which lie at lo, into every one of them, one after the other
// where this rank may die in between and others go on: so the kernels do it tile by tile.
func (r *Route) foldBlock(p *pass, lo int) {
	if !r.o.Survives() {
		reduce.FoldTogether(p.op, r.o.Runs(), lo, r.srcs, p.weighting())
		return
	}
	result := bytes.Clone(r.srcs[0])
	reduce.FoldRuns(p.op, r.o.Runs(), lo, result, r.srcs, p.weighting(), 0)
	done := r.shared.Get(r.rank, wordDone)
	for _, array := range r.srcs {
		reduce.Copy(array, result)
		r.shared.Put(wordDone, done) // a turn
	}
}

// foldSpare folds them into a spare, after a turn, since that takes its time.
func (r *Route) foldSpare(p *pass, lo int, spare []byte) {
	_ = r.shared.Get(r.rank, wordDone)
	reduce.FoldRuns(p.op, r.o.Runs(), lo, spare, r.srcs, p.weighting(), 0)
}
