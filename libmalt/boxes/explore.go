//go:build explore

package boxes

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// What the exhaustive checks need: to give an object boxes of their own, and to see all that
// the steps of a rank depend on.

// Explored gives b a channel without boxes, of a job that goes on when ranks die or does not.
func (b *Boxes) Explored(m Mode, survives bool) {
	c := &channel{
		mode: m, everyone: m.Everyone(b.Job.Size),
		spec: rdma.Spec{Bytes: b.Codec.Most(), Mode: m.Rule.Boxes()},
	}
	c.among(rdma.Everyone(b.Job.Size), b.Job.Rank)
	c.edged, c.readers = survives && c.spec.Mode.Depth() > 0, c.receivers
	if c.edged {
		c.readers = c.view.Others(b.Job.Rank)
	}
	if c.spec.Mode == rdma.ByClock {
		c.clocks = make([]rdma.Inbox, b.Job.Size) // on `all`: those of the senders
	}
	b.ch, b.Open = c, true
	b.follow()
}

// Of says of what elements b is.
func (b *Boxes) Of(runs []reduce.Run) { b.runs = runs }

// Box is the box of b, and its readers. Connect gives it, Hear what comes from rank.
func (b *Boxes) Box() (rdma.Outbox, rdma.Spec, []int) { return b.ch.out, b.ch.spec, b.ch.readers }

func (b *Boxes) Connect(out rdma.Outbox) {
	b.ch.connect(out)
	b.ch.agree(b.ch.view, b.Job.Rank)
}

func (b *Boxes) Hear(rank int, in rdma.Inbox) {
	b.ch.hear(in)
	b.ch.agree(b.ch.view, b.Job.Rank)
	b.ch.sources[len(b.ch.sources)-1].edge = &b.Counts.Edges[rank]
	if b.ch.clocks != nil {
		b.ch.clocks[rank] = in
	}
}

// From is the box of rank; nil where it is not read.
func (b *Boxes) From(rank int) rdma.Inbox {
	for i := range b.ch.sources {
		if b.ch.sources[i].rank == rank && b.ch.sources[i].reads {
			return b.ch.sources[i].inbox
		}
	}
	return nil
}

// Served are the ranks that the last update was for.
func (b *Boxes) Served() []int { return b.ch.sentTo() }

// State is what the steps of a gather or scatter, and all calls to come, depend on, beside
// the codec and the box.
func (b *Boxes) State() []any {
	state := append(b.Member.State(), b.unfolds, b.void, b.back, b.owedAt, b.needed, b.ch.view)
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		state = append(state, src.has, src.held.Seq, src.held.Clock, src.folded, src.read, src.taken, src.below, src.graph != nil, src.reads, src.inbox)
	}
	if _, plain := b.counting.(once); !plain || b.Route != (core.BoxesOnly{}) {
		state = append(state, b.era, b.syncing.stage)
	}
	if t, ok := b.counting.(*totals); ok && b.Job.Settles() {
		state = append(state, t.last, t.told)
	}
	return state
}
