//go:build explore

package rows

import (
	"malt/graphs"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// For the exhaustive checks: to give an engine a plan and queues of its own, and to see all that
// its steps depend on.

// Explored are the engines of all ranks, with their plans.
func Explored(os []core.Object, g *graphs.Graph, op reduce.Op, row spvec.Shape, ids []Ids) []*Engine {
	all := make([]*Engine, len(os))
	for r, o := range os {
		e := newEngine(o, g, op, row, ids[r])
		e.memory = make([]byte, e.ends[2])
		all[r] = e
	}
	for stage := range g.Stages(0) {
		lists := make([][][]byte, len(all))
		for r := range all {
			s := all[r].plan.stages[stage]
			for _, m := range s.group {
				lists[r] = append(lists[r], all[m].plan.List(s.own))
			}
		}
		for r := range all {
			if err := all[r].plan.Take(lists[r]); err != nil {
				panic(err)
			}
		}
	}
	for _, e := range all {
		for i := range e.mapped {
			e.mapped[i] = make([]byte, (e.plan.most+1)*row.RowBytes())
		}
	}
	return all
}

// InMessages has a message take no more than so many rows.
func (e *Engine) InMessages(rows int) {
	e.call.chunk = rows * e.row.RowBytes()
	e.spec.Bytes = e.call.chunk
}

// Queues are those of this rank: to whom.
func (e *Engine) Queues(queue func(reader int, spec rdma.Spec) rdma.Outbox) {
	_ = e.each(func(r int, l *link) error {
		l.out = queue(r, e.spec)
		return nil
	})
}

// Hear gives it the queue of another rank.
func (e *Engine) Hear(in rdma.Inbox) { e.links[in.From()].in = in }

// State is what its steps depend on.
func (e *Engine) State() []any {
	c := &e.call
	state := []any{c.number, c.round, c.peers, c.open, c.turned, c.rows[0], c.rows[1], c.folded, e.memory}
	_ = e.each(func(_ int, l *link) error {
		state = append(state, l.out, l.in, l.has, l.held.Seq, l.used)
		return nil
	})
	return state
}
