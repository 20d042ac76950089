package boxes

import (
	"slices"

	"malt/libmalt/internal/core"
	"malt/rdma"
)

// When a rank has died and the others go on, each repairs the graph by itself, at its next
// call: it sends to the receivers of the graph among the ranks that are left. A new
// receiver finds the update in a box that it has already: ranks that are to survive others
// publish for all. Updates that the dead rank had sent are still folded.
//
// In a queue both ends of an edge have to agree where it begins or ends: package box says
// how. A gather waits for a new sender as for any other, and for one that sends no more until
// that has said so.

// among makes the channel one among the ranks of view.
func (c *channel) among(view rdma.View, rank int) {
	c.view, c.graph = view, c.mode.Graph.Among(view.Ranks)
	c.receivers, c.senders = c.graph.AllReceivers(rank), c.graph.AllSenders(rank)
}

// repair makes the channel one among the ranks of the view that the job has: its calls
// adopt one, and the end of a collective call leaves it at that call's own.
func (b *Boxes) repair() {
	view, c := b.Job.View(), b.ch
	if c == nil || view.Generation == c.view.Generation {
		return
	}
	before, old, graph := c.receivers, c.view, c.graph
	c.among(view, b.Job.Rank)
	c.some = true
	if c.edges == nil && slices.ContainsFunc(c.receivers, func(r int) bool { return !slices.Contains(before, r) }) {
		b.Codec.Widened()
	}
	b.forget(old)
	b.serve(true)
	for i := range c.sources {
		s := &c.sources[i]
		s.sends = slices.Contains(c.senders, s.rank)
		if old.Has(s.rank) && !view.Has(s.rank) {
			s.graph = graph
		}
		if s.queue != nil && s.sends {
			s.reads = true
			s.queue.Begin(view.Generation)
		}
	}
}

// forget frees what ranks that have died since the view old were reading.
func (b *Boxes) forget(old rdma.View) {
	out, ok := b.ch.out.(rdma.ViewedOutbox)
	for _, r := range old.Ranks {
		if ok && !b.ch.view.Has(r) {
			out.Forget(r)
		}
	}
}

// serve begins edges to receivers that have begun to read, of a queue. changed: there is
// a view that the box does not know.
func (b *Boxes) serve(changed bool) {
	c := b.ch
	if c.edges == nil || !changed && len(c.served) == len(c.receivers) {
		return
	}
	if n := c.edges.Serve(c.view.Generation, c.receivers); n == len(c.served) && !changed {
		return
	}
	before := c.served
	c.served = slices.DeleteFunc(slices.Clone(c.receivers), func(r int) bool { return !c.edges.Served(r) })
	if b.Head.Load() > 0 && slices.ContainsFunc(c.served, func(r int) bool { return !slices.Contains(before, r) }) {
		b.Codec.Widened()
	}
}

// pass counts what came from ranks that do not send to this one, after a gather: as often as
// it would have taken an update of theirs.
func (b *Boxes) pass() {
	for i := range b.ch.sources {
		if s := &b.ch.sources[i]; s.queue != nil && !s.reads {
			away, _ := b.Job.IsAway(s.rank)
			s.queue.Pass(away)
		}
	}
}

// bury closes, after a gather, the boxes of ranks that have died and have sent no more than
// was folded.
func (b *Boxes) bury() {
	c := b.ch
	if len(c.view.Ranks) == b.Job.Size {
		return
	}
	if b.inStep() {
		b.Over(b.Job.RouteRank(), b.Clock())
	}
	b.drop(func(s source) bool {
		if c.view.Has(s.rank) {
			return false
		}
		switch clock, _ := s.inbox.Clock(); {
		case b.inStep():
			return b.Over(s.rank, b.Clock())
		case b.Settles():
			return false // another rank may have a newer total
		case c.spec.Mode == rdma.ByClock && clock > b.Clock():
			return false
		case c.spec.Mode.Depth() > 0 && s.reads && !slices.Contains(b.gathering.lost, s.rank):
			return false
		}
		return true
	})
}

// leave closes the boxes of the ranks that were not in a collective call after which
// all counts as seen. Their last updates are not folded then: of a queue they may
// have reused slots which this rank had not read, while it was in the call. nil: all were.
func (b *Boxes) leave(among []int) {
	if among != nil && len(among) < b.Job.Size {
		b.drop(func(s source) bool { return !slices.Contains(among, s.rank) })
	}
}

// bound has what ranks that were not in a collective call had sent count up to the clock of those
// that were. While these were in the call, one could go on alone; of what it sent then, its last
// updates are there, for some receivers others than for others.
func (b *Boxes) bound(l *core.Level) {
	for i := range b.ch.sources {
		if s := &b.ch.sources[i]; s.below == 0 && l.Among != nil && !slices.Contains(l.Among, s.rank) {
			s.below = l.Clock + 1
		}
	}
}

// drop closes the boxes of dead ranks.
func (b *Boxes) drop(which func(source) bool) {
	c := b.ch
	c.sources = slices.DeleteFunc(c.sources, func(s source) bool {
		if !which(s) {
			return false
		}
		b.counting.keep(&s)
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
