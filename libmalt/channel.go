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
	words     rdma.Words  // bsp: word 0 is the clock that the rank has arrived at
	out       rdma.Outbox // nil without receivers
	receivers []int       // all that may ever be sent to, in the graph's order
	sources   []source    // all that may ever be heard from, in the order of ranks
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

// openChannel publishes this rank's box under name and subscribes to those of
// its in-neighbours. It blocks until they have published theirs.
func openChannel(ctx context.Context, w *World, name string, bytes int, m mode, edges []Edge) (*channel, error) {
	spec := rdma.Spec{
		Bytes: bytes, Depth: m.consistency.Depth(), Lockstep: m.consistency.Kind == consistency.BSP, About: m.agreed(),
	}
	c := &channel{receivers: m.graph.AllReceivers(w.rank)}
	err := func() (err error) {
		if len(c.receivers) > 0 {
			if c.out, err = w.t.Publish(ctx, name, spec, c.receivers); err != nil {
				return err
			}
		}
		if spec.Lockstep {
			if c.words, err = w.t.Words(ctx, name, 1); err != nil {
				return err
			}
		}
		senders := slices.Clone(m.graph.AllSenders(w.rank))
		slices.Sort(senders)
		inboxes, err := w.t.Subscribe(ctx, name, spec, senders)
		for _, in := range inboxes {
			c.sources = append(c.sources, source{
				rank: in.From(), inbox: in, edge: &edges[in.From()], lost: edges[in.From()].Overwritten,
			})
		}
		return err
	}()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// skip marks what every rank had sent when it was at heads as seen.
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

// leave tells ranks that do not read this one's box not to wait for it.
func (c *channel) leave() {
	if c.words != nil {
		c.words.Set(0, ended)
	}
}

func (c *channel) close() error {
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
