package libmalt

import (
	"context"
	"errors"
	"slices"

	"malt/libmalt/consistency"
	"malt/rdma"
)

// channel is the boxes through which an object travels under one graph and
// consistency. configure makes a new one.
type channel struct {
	name      string
	spec      rdma.Spec
	words     rdma.Words  // bsp: word 0 is the clock that the rank has arrived at
	out       rdma.Outbox // nil without receivers
	receivers []int       // all that may ever be sent to, in the graph's order
	senders   []int       // all that may ever be heard from, in the order of ranks
	sources   []source    // what is heard from them
}

// source is one in-neighbour.
type source struct {
	rank  int
	inbox rdma.Inbox
	held  rdma.Update // taken and not folded yet, if has
	has   bool
	edge  *Edge

	folded uint64 // through this channel
	lost   uint64 // edge.Overwritten before this channel
}

// release gives the held update back.
func (s *source) release() {
	s.inbox.Release(s.held.Seq)
	s.held, s.has = rdma.Update{}, false
}

// publishChannel makes the channel of an object and publishes this rank's box.
// It does not wait.
func publishChannel(w *World, name string, bytes int, m mode) (*channel, error) {
	c := &channel{
		name: name, receivers: m.graph.AllReceivers(w.rank), senders: slices.Sorted(slices.Values(m.graph.AllSenders(w.rank))),
		spec: rdma.Spec{
			Bytes: bytes, Depth: m.consistency.Depth(), Lockstep: m.consistency.Kind == consistency.BSP, About: brief(m.agreed()),
		},
	}
	if len(c.receivers) > 0 {
		var err error
		if c.out, err = w.t.Publish(context.Background(), name, c.spec, c.receivers); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// join connects the channel to those of the other ranks. It blocks until they
// have published theirs.
func (c *channel) join(ctx context.Context, t rdma.Transport) (err error) {
	if c.spec.Lockstep {
		if c.words, err = t.Words(ctx, c.name, 1); err != nil {
			return err
		}
	}
	inboxes, err := t.Subscribe(ctx, c.name, c.spec, c.senders)
	for _, in := range inboxes {
		c.sources = append(c.sources, source{rank: in.From(), inbox: in})
	}
	return err
}

// open begins to count in the edges of the object.
func (c *channel) open(edges []Edge) {
	for i := range c.sources {
		s := &c.sources[i]
		s.edge = &edges[s.rank]
		s.lost = s.edge.Overwritten
	}
}

// skip marks what every rank had sent when it was at heads as seen; of one that
// has closed the object everything: in queues that may be overwritten by now.
func (c *channel) skip(heads []uint64) {
	for i := range c.sources {
		s := &c.sources[i]
		if heads[s.rank] > 0 {
			s.inbox.Release(heads[s.rank])
		}
		if s.has && s.held.Seq <= heads[s.rank] {
			s.held, s.has = rdma.Update{}, false
		}
	}
}

// arrive raises this rank's clock words without a message.
func (c *channel) arrive(clock uint64) {
	if c.words != nil {
		c.words.Set(0, clock)
	}
	if c.out != nil {
		_ = c.out.Advance(clock) // fails only where it was closed
	}
}

// close leaves the channel. Ranks that do not read this one's box must hear, too,
// that they need not wait for it, unless this rank is dead to them: then they
// must hear that.
func (c *channel) close(w *World) error {
	if c.words != nil && w.t.State(w.rank) == nil {
		c.words.Set(0, ended)
	}
	var errs []error
	for i := range c.sources {
		errs = append(errs, c.sources[i].inbox.Close())
	}
	if c.out != nil {
		errs = append(errs, c.out.Close())
	}
	if c.words != nil {
		errs = append(errs, c.words.Close())
	}
	return errors.Join(errs...)
}
