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

// repair makes the channel one among the ranks of the view that the job has: its calls
// adopt one, and the end of a collective call leaves it at that call's own.
func (b *Boxes) repair() {
	view, c := b.Job.View(), b.ch
	if c == nil || view.Generation == c.view.Generation {
		return
	}
	before := c.receivers
	c.view, c.some, c.graph = view, true, c.mode.Among(view)
	c.receivers = c.graph.AllReceivers(b.Job.Rank)
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
	c.drop(func(s source) bool {
		if c.view.Has(s.rank) {
			return false
		}
		switch clock, _ := s.inbox.Clock(); {
		case c.spec.Mode == rdma.ByClock && clock > b.Clock():
			return false
		case c.spec.Mode.Depth() > 0 && !slices.Contains(b.gathering.lost, s.rank):
			return false
		}
		return true
	})
}

// forget closes the boxes of the ranks that were not in a collective call after which
// all counts as seen. What they had sent last is not folded then: of a queue they may
// have reused slots which this rank had not read, while it was in the call. nil: all were.
func (b *Boxes) forget(among []int) {
	if among != nil && len(among) < b.Job.Size {
		b.ch.drop(func(s source) bool { return !slices.Contains(among, s.rank) })
	}
}

// drop closes the boxes of dead ranks.
func (c *channel) drop(which func(source) bool) {
	c.sources = slices.DeleteFunc(c.sources, func(s source) bool {
		if !which(s) {
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
