//go:build explore

package shards

import (
	"malt/graphs"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
)

// Explored is an engine without boxes, for the exhaustive checks.
func Explored(o core.Object, g *graphs.Graph, op reduce.Op, bytes int, row spvec.Shape, f filter.Filter) *Engine {
	e := newEngine(o, g, bytes, row, f)
	e.lay(make([]byte, e.memory()), op)
	return e
}

// State is what its steps depend on.
func (e *Engine) State() []any {
	state := append(e.Changes.State(), e.core.own, e.core.gathered, e.sum, e.theirs)
	if e.rows != nil {
		state = append(state, e.rows.seen, e.rows.sent)
	}
	for q := range e.shards {
		s := &e.shards[q]
		state = append(state, e.core.parts[q], s.push, s.sum, s.way, s.rows.seq, s.rows.ledger)
	}
	return state
}
