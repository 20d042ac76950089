//go:build explore

package boxes

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// What the exhaustive checks need: to give an object boxes of their own, and to see all that
// the steps of a rank depend on.

// Explored gives b, of a job of size ranks, a channel without boxes.
func (b *Boxes) Explored(m Mode) {
	c := &channel{
		mode: m, everyone: m.Everyone(b.Job.Size), view: rdma.Everyone(b.Job.Size), graph: m.Graph, receivers: m.Graph.AllReceivers(b.Job.Rank),
		spec: rdma.Spec{Bytes: b.Codec.Most(), Mode: m.Rule.Boxes()},
	}
	if c.spec.Mode == rdma.ByClock {
		c.clocks = make([]rdma.Inbox, b.Job.Size) // on `all`: those of the senders
	}
	b.ch, b.Open = c, true
}

// Of says of what elements b is.
func (b *Boxes) Of(runs []reduce.Run) { b.runs = runs }

// Box is the box of b, and its readers. Connect gives it, Hear what comes from rank.
func (b *Boxes) Box() (rdma.Outbox, rdma.Spec, []int) { return b.ch.out, b.ch.spec, b.ch.receivers }

func (b *Boxes) Connect(out rdma.Outbox) { b.ch.out = out }

func (b *Boxes) Hear(rank int, in rdma.Inbox) {
	b.ch.sources = append(b.ch.sources, source{rank: rank, inbox: in, edge: &b.Counts.Edges[rank], sends: true})
	if b.ch.clocks != nil {
		b.ch.clocks[rank] = in
	}
}

// From is the box of rank.
func (b *Boxes) From(rank int) rdma.Inbox {
	for i := range b.ch.sources {
		if b.ch.sources[i].rank == rank {
			return b.ch.sources[i].inbox
		}
	}
	return nil
}

// State is what the steps of a gather or scatter, and all calls to come, depend on, beside
// the codec and the box.
func (b *Boxes) State() []any {
	state := append(b.Member.State(), b.unfolds, b.void, b.back, b.owedAt, b.ch.view)
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		state = append(state, src.has, src.held.Seq, src.held.Clock, src.folded, src.read, src.inbox)
	}
	if b.Route != (core.BoxesOnly{}) {
		state = append(state, b.syncing.stage)
	}
	return state
}
