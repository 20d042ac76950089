//go:build explore

package engine

import (
	"malt/libmalt/internal/core"
	"malt/rdma"
)

// State is what the steps of a sync depend on, beside its headers and the carrier.
func (m *meeting) State() []any { return []any{m.met} }

// ByMessages is its headers.
func (m *meeting) ByMessages() core.Call { return m.Collective }

// Boxes gives an engine boxes of the checks' own, and Hear that of another rank. No goroutine runs: its
// calls take and send.
func (e *Changes) Boxes(box func(source int, spec rdma.Spec, readers []int) rdma.Outbox) {
	_ = e.way.Publish(func(source int, _ string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
		return box(source, spec, readers), nil
	})
}

func (e *Changes) Hear(source int, in rdma.Inbox) {
	e.In[source] = append(e.In[source], Inbox{Inbox: in})
}

// Beside is a pass of the goroutine.
func (e *Changes) Beside() { e.poll() }

// State is what its steps depend on, which none does on what the gathers have counted.
func (e *Changes) State() []any {
	state := []any{e.Era, e.used, e.age, e.Totals.Start, e.Totals.Sum, e.Totals.Shadow, e.Totals.Last, e.Totals.Weight}
	e.each(func(_ int, b *Inbox) { state = append(state, b.Inbox, b.Has, b.Held.Seq, b.Held.Tag) })
	return state
}
