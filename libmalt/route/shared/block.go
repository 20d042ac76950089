//go:build !explore

package shared

import "malt/libmalt/reduce"

const explored = false

// foldBlock folds r.srcs, which lie at lo, into every one of them.
func (r *Route) foldBlock(p *pass, lo int) {
	r.from = reduce.Earlier(r.from, reduce.FoldTogether(p.op, r.o.Runs(), lo, r.srcs, p.weighting()))
}

// foldSpare folds them into a spare.
func (r *Route) foldSpare(p *pass, lo int, spare []byte) {
	r.from = reduce.Earlier(r.from, reduce.FoldRuns(p.op, r.o.Runs(), lo, spare, r.srcs, p.weighting(), 0))
}
