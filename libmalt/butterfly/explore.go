//go:build explore

package butterfly

import (
	"malt/graphs"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// For the exhaustive checks: to give an engine boxes of their own, and to see all that its
// steps depend on. No goroutine runs: its calls pass on what has come.

// Explored is an engine without boxes.
func Explored(o core.Object, g *graphs.Graph, op reduce.Op, bytes int) *Engine {
	e := newEngine(o, g, bytes)
	e.lay(make([]byte, reduce.TotalsBytes(o.Runs())), op)
	return e
}

// Boxes are what this rank publishes, by stage: to whom.
func (e *Engine) Boxes(box func(stage int, spec rdma.Spec, readers []int) rdma.Outbox) {
	for i := range e.core.stages {
		spec := e.spec(i)
		e.stages = append(e.stages, stage{out: box(i, spec, e.core.others(i)), spec: spec})
	}
}

// Hear gives it the box of another rank.
func (e *Engine) Hear(stage int, in rdma.Inbox) {
	e.stages[stage].boxes = append(e.stages[stage].boxes, inbox{Inbox: in})
}

// State is what its steps depend on, which none does on what the gathers have counted.
func (e *Engine) State() []any {
	state := []any{e.core.has, e.core.sent, e.era, e.used, e.age, e.totals.Start, e.totals.Sum, e.totals.Shadow}
	for i := range e.stages {
		state = append(state, e.stages[i].out)
		for j := range e.stages[i].boxes {
			b := &e.stages[i].boxes[j]
			state = append(state, b.Inbox, b.has, b.held.Seq, b.held.Tag)
		}
	}
	return state
}
