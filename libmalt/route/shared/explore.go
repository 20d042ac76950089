//go:build explore

package shared

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// This file is for the exploration in libmalt.

func init() { cardBytes = 96 }

// Layout is the memory that an array of so many bytes takes, the number of words, and
// which of them claims blocks.
func Layout(array int) (bytes, wordsOf, claims int) {
	return spareAt(array) + core.BlockBytes + viewBytes(1), words, wordDone
}

// On is a route of all ranks in existing memory, which a rank takes for small arrays if that is said.
func On(o core.Boxed, m rdma.Shared, bytes int, small bool) *Route {
	r := on(o, m, bytes, small)
	r.Among(rdma.Everyone(o.Size()).Ranks)
	return r
}

// State is what the steps of a sync, and all later calls, depend on.
func (r *Route) State() []any { return []any{r.clock, r.state, r.leftAt} }

// State is what the steps of an allreduce depend on.
func (o *allReduce) State() []any { return []any{o.arrived, o.state} }

// ByMessages is the call.
func (o *allReduce) ByMessages() core.Call { return o.Call }

// Last is the clock of the last sync, and whether it was committed.
func (r *Route) Last() (clock uint64, done bool) { return r.clock, r.state == committed }

// Ranks are those whose arrays the last sync has folded in place.
func (r *Route) Ranks() []int { return r.syncs.ranks }

// Claim is what a rank's wordDone says: the bytes from Lo to Hi are folded in all arrays.
type Claim struct {
	Lo, Hi int
	Blocks uint64
	Op     reduce.Op // of a sync
	Number uint64    // its clock, or that of the call
	Ranks  []int     // whose arrays are folded
	Call   bool      // an allreduce, no sync
	Holds  bool      // some rank has yet to fold
}

// Claim is that of this rank.
func (r *Route) Claim() Claim {
	done := r.shared.Get(r.rank, wordDone)
	op := r.shared.Get(r.rank, wordOp)
	c := Claim{Blocks: done & (1<<blockBits - 1), Op: reduce.Op(op), Number: done >> blockBits}
	if c.Number == 0 {
		return c
	}
	var p pass
	p.begin(r, c.Op, c.Number, r.shared.Get(r.home(), wordDecision))
	c.Call, c.Number, c.Ranks = c.Number&ofCall != 0, c.Number&^ofCall, p.ranks
	word, folded := p.end()
	c.Holds = len(r.below(p.folding(), word, folded, nil)) > 0
	c.Lo, c.Hi = r.span(&p, r.rank)
	c.Hi = min(c.Hi, c.Lo+int(c.Blocks)*core.BlockBytes)
	return c
}
