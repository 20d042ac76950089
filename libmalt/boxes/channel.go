package boxes

import (
	"context"
	"errors"
	"slices"

	"malt/graphs"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// channel is the boxes through which an object travels in one mode. Configuring makes a new
// one.
type channel struct {
	mode      Mode
	name      string
	spec      rdma.Spec
	out       rdma.Outbox   // nil without receivers
	view      rdma.View     // whose ranks the next three are about: see repair
	graph     *graphs.Graph // the mode's, among them
	receivers []int         // all that may ever be sent to, in the graph's order
	senders   []int
	some      bool     // the box has other readers, too
	readers   []int    // all of them
	sources   []source // what is heard from others, in the order of ranks

	// Of a queue in a job that goes on when ranks die: its edges begin and end. Between hosts
	// they only end: see Lasts.
	edged  bool
	edges  rdma.ViewedOutbox // is out
	served []int             // receivers that the next update is for: see serve

	// In bsp all need the clock of each rank, and must see the same: in one word, so
	// that they agree on how far a rank was when it died. It is in the rank's box, or
	// where that is not for all others, in one that carries the clock alone.
	clock   rdma.Outbox  // nil without
	partial []int        // the others that have such a box
	clocks  []rdma.Inbox // by rank, from whichever box; the own is nil

	everyone bool // all send to all, in lock-step
	joined   bool // connected to those of the others: each box can be taken once
}

// source is one in-neighbour.
type source struct {
	rank  int
	inbox rdma.Inbox
	held  rdma.Update // taken and not folded yet, if has
	has   bool
	edge  *core.Edge

	read   uint64           // seq of the update that was folded last
	taken  uint64           // clock of the update that was taken last, to be folded
	below  uint64           // in lock-step: only updates of a lower clock count; 0: all
	graph  *graphs.Graph    // the last one that the rank was in, once it is left out
	folded uint64           // through this channel
	lost   uint64           // edge.Overwritten before this channel
	pace   rule.Pace        // in async
	copy   []byte           // of the held update, in a replay
	at     uint64           // how far the sender was at the last gather, of totals
	sends  bool             // in the graph; else it may come to, when others have died
	reads  bool             // of a queue: it sends, or what it has sent is not all folded
	queue  rdma.ViewedInbox // is inbox, where the sender has edges
}

// exactly is the update of that clock.
func (s *source) exactly(clock uint64) (u rdma.Update, ok bool, err error) {
	if u, ok, err = s.inbox.At(clock); u.Clock != clock {
		return rdma.Update{}, false, err
	}
	return u, ok, err
}

// release gives the held update back.
func (s *source) release() {
	s.inbox.Release(s.held.Seq)
	s.held, s.has = rdma.Update{}, false
}

// Publish publishes this rank's boxes for a channel in that mode. about is what all ranks
// must have alike. It does not wait.
func (b *Boxes) Publish(m Mode, about string) (err error) {
	b.next, err = b.publish(m, about)
	return err
}

// Join connects the channel to those of the other ranks. It blocks until they have
// published theirs. What the route needs comes with the first. It may be called again after an
// error.
func (b *Boxes) Join(ctx context.Context) error {
	if !b.next.joined {
		if err := b.join(ctx, b.next); err != nil {
			return err
		}
		b.next.joined = true
	}
	if b.ch == nil {
		return b.Route.Join(ctx)
	}
	return nil
}

func (b *Boxes) publish(m Mode, about string) (*channel, error) {
	t, rank, size := b.Job.T, b.Job.Rank, b.Job.Size
	c := &channel{
		mode: m, name: b.BoxName(), everyone: m.Everyone(size),
		spec: rdma.Spec{Bytes: b.Codec.Most(), Mode: m.Rule.Boxes(), About: core.Brief(about), Partial: b.Codec.Row() > 0},
	}
	others := rdma.Everyone(size).Others(rank)
	c.edged = b.Job.Survives() && c.spec.Mode.Depth() > 0 && !b.Job.Settles()
	c.among(b.Job.Adopt(), rank)
	c.readers = c.receivers
	if b.Job.Survives() {
		c.readers = others
	}
	if len(c.readers) > 0 {
		out, err := t.Publish(context.Background(), c.name, c.spec, c.readers)
		if err != nil {
			return nil, err
		}
		c.connect(out)
	}
	if c.spec.Mode != rdma.ByClock {
		return c, nil
	}
	c.clocks = make([]rdma.Inbox, size)
	for _, r := range others {
		if !b.Job.Survives() && len(m.Graph.AllReceivers(r)) < size-1 {
			c.partial = append(c.partial, r)
		}
	}
	if len(c.readers) < len(others) {
		var err error
		if c.clock, err = t.Publish(context.Background(), c.clockName(), clockSpec, others); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// clockSpec is that of a box which carries a clock alone.
var clockSpec = rdma.Spec{Mode: rdma.Queue(1), About: "clock"}

func (c *channel) clockName() string { return c.name + "/clock" }

// connect makes out the box of c.
func (c *channel) connect(out rdma.Outbox) {
	c.out = out
	if c.edged && out != nil {
		c.edges = out.(rdma.ViewedOutbox)
	}
}

// hear makes an inbox a source.
func (c *channel) hear(in rdma.Inbox) {
	s := source{rank: in.From(), inbox: in}
	if c.edged {
		s.queue = in.(rdma.ViewedInbox)
	}
	c.sources = append(c.sources, s)
}

// agree makes the channel one among the ranks of view, which all that have made it have
// agreed on: its edges are there from the first update on.
func (c *channel) agree(view rdma.View, rank int) {
	c.among(view, rank)
	c.some, c.served = len(c.readers) > len(c.receivers), c.receivers
	if c.edges != nil {
		c.edges.Serve(view.Generation, c.receivers)
	}
	for i := range c.sources {
		s := &c.sources[i]
		s.sends = slices.Contains(c.senders, s.rank)
		s.reads = s.sends
		if s.queue != nil && s.sends {
			s.queue.Begin(view.Generation)
		}
	}
}

// join connects the channel to those of the other ranks. It blocks until they
// have published theirs.
func (b *Boxes) join(ctx context.Context, c *channel) error {
	from := slices.Sorted(slices.Values(c.senders))
	if b.Job.Survives() {
		from = c.view.Others(b.Job.Rank)
	}
	inboxes, err := b.subscribe(ctx, c.name, c.spec, from)
	for _, in := range inboxes {
		c.hear(in)
		if c.clocks != nil && !slices.Contains(c.partial, in.From()) {
			c.clocks[in.From()] = in
		}
	}
	if err != nil || len(c.partial) == 0 {
		return err
	}
	inboxes, err = b.subscribe(ctx, c.clockName(), clockSpec, c.partial)
	for _, in := range inboxes {
		c.clocks[in.From()] = in
	}
	return err
}

// subscribe does without ranks that the job goes on without.
func (b *Boxes) subscribe(ctx context.Context, name string, spec rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	t := b.Job.T
	for {
		inboxes, err := t.Subscribe(ctx, name, spec, senders)
		dead := core.DeathIn(err)
		if dead == nil || !core.LeftOut(t, dead.Rank) {
			return inboxes, err
		}
		senders = slices.DeleteFunc(slices.Clone(senders), func(r int) bool { return core.LeftOut(t, r) })
	}
}

// open begins to count in the edges of the object.
func (c *channel) open(edges []core.Edge) {
	for i := range c.sources {
		s := &c.sources[i]
		s.edge = &edges[s.rank]
		s.lost = s.edge.Overwritten
	}
}

// skip marks what every rank had sent when it was at heads as seen; of one that
// has closed the object, or is not known, what may be overwritten by now.
func (c *channel) skip(heads []uint64) {
	for i := range c.sources {
		s := &c.sources[i]
		switch head := heads[s.rank]; {
		case s.queue != nil:
			s.queue.Level(head)
		case head == 0:
		case head == core.AllSeen:
			s.inbox.Return()
		default:
			s.inbox.Release(head)
		}
		if s.has && s.held.Seq <= heads[s.rank] {
			s.held, s.has = rdma.Update{}, false
		}
	}
}

// arrive raises this rank's clock words without a message.
func (c *channel) arrive(clock uint64) {
	for _, out := range []rdma.Outbox{c.out, c.clock} {
		if out != nil {
			_ = out.Advance(clock) // fails only where it was closed
		}
	}
}

// close leaves the channel: the others no longer wait for this rank in it.
func (c *channel) close() error {
	var errs []error
	for i := range c.sources {
		errs = append(errs, c.sources[i].inbox.Close())
	}
	for _, r := range c.partial {
		if c.clocks[r] != nil {
			errs = append(errs, c.clocks[r].Close())
		}
	}
	return errors.Join(append(errs, c.quit())...)
}

// quit closes this rank's boxes.
func (c *channel) quit() (err error) {
	for _, out := range []rdma.Outbox{c.out, c.clock} {
		if out != nil {
			err = errors.Join(err, out.Close())
		}
	}
	c.out, c.clock = nil, nil
	return err
}
