//go:build explore

package shards

import (
	"malt/graphs"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// For the exhaustive checks: to give an engine boxes of their own, and to see all that its
// steps depend on. No goroutine runs: its calls take and send.

// Explored is an engine without boxes.
func Explored(o core.Object, g *graphs.Graph, op reduce.Op, bytes int, row spvec.Shape, f filter.Filter) *Engine {
	e := newEngine(o, g, bytes, row, f)
	e.lay(make([]byte, e.memory()), op)
	return e
}

// Boxes are what this rank publishes, by part: for whom.
func (e *Engine) Boxes(box func(q int, spec rdma.Spec, readers []int) rdma.Outbox) {
	_ = e.boxes(func(q int, _ string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
		return box(q, spec, readers), nil
	})
}

// Hear gives it the box of another rank.
func (e *Engine) Hear(q int, in rdma.Inbox) {
	e.shards[q].in = append(e.shards[q].in, inbox{Inbox: in})
}

// State is what its steps depend on.
func (e *Engine) State() []any {
	state := []any{e.core.own, e.core.gathered, e.era, e.used, e.age, e.sum, e.totals.Start, e.totals.Sum, e.totals.Shadow, e.totals.Last}
	if e.rows != nil {
		state = append(state, e.rows.seen, e.rows.sent)
	}
	for q := range e.shards {
		s := &e.shards[q]
		state = append(state, e.core.parts[q], s.push, s.sum, s.way, s.rows.seq, s.rows.ledger)
		for i := range s.in {
			b := &s.in[i]
			state = append(state, b.Inbox, b.has, b.held.Seq, b.held.Tag)
		}
	}
	return state
}
