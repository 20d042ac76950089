//go:build explore

package butterfly

import (
	"malt/graphs"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// Explored is an engine without boxes, for the exhaustive checks.
func Explored(o core.Object, g *graphs.Graph, op reduce.Op, bytes int) *Engine {
	e := newEngine(o, g, bytes)
	e.Lay(make([]byte, reduce.TotalsBytes(o.Runs())), op)
	return e
}

// State is what its steps depend on.
func (e *Engine) State() []any {
	state := append(e.Changes.State(), e.core.has, e.core.sent)
	for _, out := range e.outs {
		state = append(state, out)
	}
	return state
}
