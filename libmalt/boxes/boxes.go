package boxes

import (
	"cmp"
	"sync/atomic"
	"time"

	"malt/graphs"
	"malt/libmalt/codec"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Boxes is an object that travels through boxes, and perhaps by a route past them.
type Boxes struct {
	*core.Member

	Codec    codec.Codec
	counting counting
	era      uint64 // call that began it: only totals of the same one are added up
	level    uint64 // what all ranks had changed up to here was sent before all met
	Route    core.Route
	runs     []reduce.Run // of a vector: its elements

	ch      *channel
	next    *channel // published, and perhaps not joined yet
	unfolds uint64   // scatters since the last gather
	void    bool     // those were in a queue, and a collective made them seen
	back    bool     // this rank has given a collective up, and receivers may not know that
	owedAt  uint64   // clock of a sync by the route of which the gather is due; 0: none

	weight   float64 // of the last scatter
	updates  []codec.Update
	held     atomic.Bool // between Begin and End
	compared uint64      // the clock at which compare has looked

	replay *rule.Replay // nil: this is none, or nothing can differ
	needed []uint64     // by rank: the last update that it has to read before the next is sent

	begun uint64 // when the present step of a call did, for the trace

	gathering  gathering
	awaiting   awaiting
	scattering scattering
	syncing    syncing
	folding    folding
	lent       time.Time // when the updates were, to be folded elsewhere
}

// New is for an object of these elements, or of bytes. Abandon it after an error, too.
func New(m *core.Member, runs []reduce.Run, kind codec.Kind, f filter.Filter, rows spvec.Shape, fold reduce.Op) (*Boxes, error) {
	b := &Boxes{Member: m, Route: core.BoxesOnly{}, runs: runs}
	var c codec.Codec
	var err error
	if fold.Changes() {
		c, err = codec.NewChanges(m, runs, fold)
	} else {
		c, err = codec.New(kind, m, rows, f)
	}
	b.Uses(c)
	return b, err
}

// Uses makes c the codec of b.
func (b *Boxes) Uses(c codec.Codec) {
	b.Codec, b.counting = c, once{b}
	if sums, ok := c.(codec.Cumulative); ok {
		b.counting = newTotals(b, sums)
	}
}

// Memory is the mapping that begins with the object's, of the route; nil: it needs none.
func (b *Boxes) Memory() []byte { return b.Route.Memory() }

// Mode is for whom the updates are, and when they are folded.
type Mode struct {
	Graph *graphs.Graph
	Rule  rule.Rule
	Even  bool // a gather fails where it would go on without a rank
}

// Everyone tells whether all ranks send to all others, in lock-step.
func (m Mode) Everyone(size int) bool {
	return m.Rule.Boxes() == rdma.ByClock && m.ToAll(size)
}

// Lasts tells whether objects of this mode can go on, among ranks of several hosts, when ranks
// die. Queues between hosts cannot have new edges, so all ranks have to send to all.
func (m Mode) Lasts(size int) bool { return m.Rule.Boxes().Depth() == 0 || m.ToAll(size) }

// ToAll tells whether all ranks send to all others, always.
func (m Mode) ToAll(size int) bool {
	if m.Graph.Varies() {
		return false
	}
	for r := range size {
		if len(m.Graph.AllReceivers(r)) < size-1 {
			return false
		}
	}
	return true
}

// Use makes the channel that the ranks of view have joined that of the object. Updates that
// were unseen in an earlier one count as seen.
func (b *Boxes) Use(view rdma.View) {
	c := b.next
	b.next = nil
	c.agree(view, b.Job.Rank)
	defer b.follow()
	if b.ch == nil {
		b.Route.Among(view.Ranks)
		b.ch, b.weight = c, 1
		b.forget(rdma.Everyone(b.Job.Size))
		c.open(b.Counts.Edges)
		c.arrive(b.Clock())
		b.Settled(nil)
		return
	}
	b.CatchUp() // what the ranks agreed on is about the old boxes
	b.countOverwritten(true)
	for i := range b.ch.sources {
		b.counting.keep(&b.ch.sources[i])
	}
	_ = b.ch.close() // nothing is lost: this rank has left it
	b.ch = c
	b.forget(rdma.Everyone(b.Job.Size))
	c.open(b.Counts.Edges)
	b.Codec.Renewed()
	b.Head.Store(0)
	b.unfolds, b.owedAt, b.void = 0, 0, false
	b.raise(b.Clock())
	b.Changed()
}

// follow has b do in its new channel what it has done in the recorded run, if there is one.
func (b *Boxes) follow() {
	if b.needed = nil; b.taped() {
		if b.replay = b.Job.Tape.Replay(b.ID); b.replay != nil {
			b.needed = make([]uint64, b.Job.Size)
		}
	}
}

// Abandon closes the channel that was not to be, and all that there is if it was the first.
func (b *Boxes) Abandon() {
	if b.next != nil {
		_ = b.next.close() // there is an error to tell already
		b.next = nil
	}
	if b.ch == nil {
		_ = b.Route.Close()
		_ = b.Codec.Close()
	}
}

// Settled says that all ranks have the present values; with summed, that they have the sum
// of the shares of those ranks.
func (b *Boxes) Settled(summed []int) {
	b.counting.settled(summed)
	b.Codec.Settled(summed)
}

// Share is what this rank adds to a sum over all ranks, and since which call.
func (b *Boxes) Share(weight float64) ([]byte, uint64) { return b.counting.share(weight) }

// Inherit has nothing to do: all that lived have the same totals of a rank that died.
func (b *Boxes) Inherit([]int) error { return nil }

// Age is that of totals.
func (b *Boxes) Age() uint64 { return b.counting.age() }

// AllReduce is the route's.
func (b *Boxes) AllReduce(c core.Call, op reduce.Op) core.Stepper { return b.Route.AllReduce(c, op) }

// Row is the length in bytes of a row; 0 without rows.
func (b *Boxes) Row() int { return b.Codec.Row() }

// Whole is the i-th of the updates that Begin has found, laid out as the object is.
func (b *Boxes) Whole(i int) ([]byte, error) { return b.Codec.Whole(b.updates, i) }

// queues tells whether its boxes are queues.
func (b *Boxes) queues() bool { return b.ch.mode.Rule.Boxes().Depth() > 0 }

// Writers are those of the route.
func (b *Boxes) Writers(late []int) []int { return b.Route.Writers(late) }

// CatchUp carries out what a collective call has asked for.
func (b *Boxes) CatchUp() {
	b.repair()
	l := b.Levelled()
	if l == nil || b.ch == nil {
		return
	}
	queue := b.queues()
	if queue || l.Seen {
		b.counting.skip(l.Heads)
		b.leave(l.Among)
		b.void = queue && b.unfolds > 0 && !l.Seen
		b.back = queue && l.Back
		b.unfolds, b.owedAt = 0, 0
	} else if b.ch.spec.Mode == rdma.ByClock {
		b.bound(l)
	}
	b.raise(l.Clock)
}

// raise lifts the clock to that of the collective.
func (b *Boxes) raise(clock uint64) {
	b.SetClock(max(b.Clock(), clock))
	b.level = max(b.level, clock)
	b.ch.arrive(b.Clock())
}

// Quit closes this rank's boxes of the channel.
func (b *Boxes) Quit() error { return b.ch.quit() }

// Leave closes the channel, the codec and the route.
func (b *Boxes) Leave() error {
	b.countOverwritten(true)
	err := cmp.Or(b.ch.close(), b.Codec.Close())
	return cmp.Or(err, b.Route.Close())
}
