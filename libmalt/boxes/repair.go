package boxes

import (
	"slices"

	"malt/rdma"
)

// When a rank has died and the others go on, each repairs the graph by itself, at its next
// call: it sends to the receivers of the graph among the ranks that are left. Who gets an
// update finds it in a box that it has already: ranks that are to survive others publish
// for all. What the dead rank had sent is still folded.
//
// A queue keeps its edges, less those of the dead rank.

// repair makes the channel one among the ranks of the present view.
func (b *Boxes) repair() {
	view, c := b.Job.Adopt(), b.ch
	if c == nil || view.Generation == c.view.Generation {
		return
	}
	before := c.receivers
	c.view, c.some, c.graph = view, true, c.mode.Graph.Among(view.Ranks)
	if b.widens(c) {
		c.receivers = c.graph.AllReceivers(b.Job.Rank)
	} else {
		c.receivers = slices.DeleteFunc(slices.Clone(before), func(r int) bool { return !view.Has(r) })
	}
	if slices.ContainsFunc(c.receivers, func(r int) bool { return !slices.Contains(before, r) }) {
		b.Codec.Widened()
	}
	senders := c.graph.AllSenders(b.Job.Rank)
	for i := range c.sources {
		c.sources[i].sends = slices.Contains(senders, c.sources[i].rank)
	}
}

// bury closes, after a gather, the boxes of ranks that have died and have sent no more than
// was folded.
func (b *Boxes) bury() {
	c := b.ch
	if len(c.view.Ranks) == b.Job.Size {
		return
	}
	c.sources = slices.DeleteFunc(c.sources, func(s source) bool {
		if c.view.Has(s.rank) {
			return false
		}
		switch clock, _ := s.inbox.Clock(); {
		case c.spec.Mode == rdma.ByClock && clock > b.Clock():
			return false
		case c.spec.Mode.Depth() > 0 && !slices.Contains(b.gathering.lost, s.rank):
			return false
		}
		if c.spec.Mode == rdma.Newest {
			s.countOverwritten(true)
		}
		if c.clocks != nil {
			c.clocks[s.rank] = nil
		}
		_ = s.inbox.Close() // what is left of it is nobody's
		return true
	})
}
