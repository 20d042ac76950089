package boxes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"malt/internal/say"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// Send sends the first n bytes, of a vector these rows, to the ranks in to, nil meaning all
// receivers, and returns what it sent times their number. weight is what it counts in a
// mean. Only notify-ack waits.
func (b *Boxes) Send(ctx context.Context, n int, rows []int64, to []int, weight float64) (int, error) {
	op := &b.scattering
	err := b.Run(ctx, false, op, func() error { return op.start(b, n, rows, to, weight) })
	if err != nil {
		return 0, err
	}
	return op.n * op.receivers, nil
}

// scattering is a scatter on its way. It waits for room in the queue of
// notify-ack, never in the other modes (G4).
type scattering struct {
	b         *Boxes
	n         int
	to        []int // nil: all
	named     bool  // by the caller
	some      bool  // to is not all receivers
	weight    float64
	receivers int
	late      []int
}

func (o *scattering) start(b *Boxes, n int, rows []int64, to []int, weight float64) error {
	if err := CheckWeight(weight); err != nil {
		return err
	}
	if !b.ch.mode.Rule.MayScatter(b.unfolds) {
		return say.Errorf(core.ErrState, "%s: %d scatters without a gather, and %s allows %d", b.Called("scatter"), b.unfolds+1, b.ch.mode.Rule, b.unfolds).
			In(b.Called("scatter")).Try("Call gather() first, or sync(), which does both.")
	}
	o.b, o.n, o.named, o.weight, o.late = b, n, to != nil, weight, o.late[:0]
	if err := o.address(to); err != nil {
		return err
	}
	return b.Codec.Name(rows, to)
}

// address finds out whom the scatter is for.
func (o *scattering) address(to []int) error {
	b := o.b
	o.to, o.some = nil, to != nil || b.ch.graph.Varies()
	if !o.some {
		o.receivers = len(b.ch.receivers)
		if b.ch.some {
			o.to = b.ch.receivers
		}
		return nil
	}
	now := b.ch.graph.Receivers(b.Job.Rank, b.Clock()+1)
	o.receivers = len(now)
	if to == nil {
		o.to = now
		return nil
	}
	when := ""
	if b.ch.graph.Varies() {
		when = fmt.Sprintf(" at clock %d", b.Clock()+1)
	}
	for i, r := range to {
		if !slices.Contains(now, r) {
			if dead := core.DeathIn(b.Job.T.State(r)); dead != nil && b.Job.Survives() {
				return dead.During(b.Called("scatter"))
			}
			return say.Errorf(core.ErrInvalid, "scatter of %s to rank %d, which is not among its receivers", b, r).
				At("in graph %.40s rank %d sends to %s%s", b.ch.graph, b.Job.Rank, listed(now), when)
		}
		if slices.Contains(to[:i], r) {
			return say.Errorf(core.ErrInvalid, "scatter of %s: rank %d is named twice", b, r)
		}
	}
	o.to, o.receivers = append([]int{}, to...), len(to)
	return nil
}

// listed names the only ranks that something is for.
func listed(ranks []int) string {
	if len(ranks) == 0 {
		return "no rank"
	}
	return say.Ranks(ranks) + " only"
}

func (o *scattering) Step() (bool, error) {
	done, err := o.advance()
	if done || err != nil {
		o.GiveUp()
	}
	return done, err
}

func (o *scattering) advance() (bool, error) {
	b, out := o.b, o.b.ch.out
	if b.queues() {
		if err := b.Job.UseQueue(b); err != nil {
			return false, err
		}
		defer b.Job.LeaveQueue()
	}
	if err := o.adopt(); err != nil {
		return false, err
	}
	if o.late = b.Route.Writers(o.late[:0]); len(o.late) > 0 {
		o.blocked()
		return false, nil
	}
	if o.late = b.unaware(o.late); len(o.late) > 0 {
		o.blocked()
		return false, nil
	}
	if o.late = b.unread(o.late); len(o.late) > 0 {
		o.blocked()
		return false, nil
	}
	clock := b.Clock() + 1
	if b.ch.everyone {
		b.Route.Scatters(clock)
	}
	b.serve(false)
	b.begun = b.Job.Marks.Trace.Begin()
	if out != nil {
		slot, err := out.Begin()
		for ; slot == nil && err == nil; slot, err = out.Begin() {
			if err := o.makeRoom(); err != nil {
				return false, err
			}
			if len(o.late) > 0 {
				o.blocked()
				return false, nil
			}
		}
		if err != nil {
			return false, err
		}
		if b.ch.edges != nil {
			o.narrow()
		}
		start := time.Now()
		stamp := rdma.Stamp{Clock: clock, Weight: o.weight, Tag: b.era}
		m := codec.Message{Bytes: o.n, To: o.to, Readers: b.ch.sentTo(), Out: out, Queue: b.queues(), Weight: o.weight, Clock: clock}
		if m.To == nil {
			m.To = m.Readers
		}
		n, kind, err := b.Codec.Encode(slot, m)
		if err != nil {
			return false, err
		}
		if o.n, stamp.Kind = n, uint16(kind); o.named && b.inStep() {
			stamp.Age = named
		}
		if err := out.Commit(o.n, stamp, o.to); err != nil {
			return false, err
		}
		b.Head.Add(1)
		b.published(clock)
		b.Counts.ScatterTime += time.Since(start)
	}
	if b.ch.clock != nil {
		if err := b.ch.clock.Advance(clock); err != nil {
			return false, err
		}
	}
	b.SetClock(clock)
	b.Changed()
	b.unfolds++
	b.void = false
	b.weight = o.weight
	b.Counts.Scatters++
	o.count()
	return true, nil
}

// narrow leaves out whom a queue does not serve: ranks to which an edge has not begun yet,
// or has ended since the call began.
func (o *scattering) narrow() {
	served := o.b.ch.served
	if !o.some {
		o.to = served
	} else {
		o.to = slices.DeleteFunc(o.to, func(r int) bool { return !slices.Contains(served, r) })
	}
	o.receivers = len(o.to)
}

// sentTo are the ranks that get updates.
func (c *channel) sentTo() []int {
	if c.edges != nil {
		return c.served
	}
	return c.receivers
}

// adopt goes over to the newest view. The receivers that the caller has named are of the
// one that it knew: they get the update also where the graph has changed since.
func (o *scattering) adopt() error {
	b := o.b
	before := b.ch.view.Generation
	b.Job.Adopt()
	b.CatchUp()
	if err := b.Job.Help(b.Member); err != nil {
		return err
	}
	if b.ch.view.Generation == before {
		return nil
	}
	if !o.named {
		return o.address(nil)
	}
	for _, r := range o.to {
		if dead := core.DeathIn(b.Job.T.State(r)); dead != nil && !b.ch.view.Has(r) {
			return dead.During(b.Called("scatter"))
		}
	}
	return nil
}

// unaware are the receivers that do not know yet that this rank takes part again,
// after a collective call that it has given up. One that gathered without it,
// and with an update of a rank that has folded the one to come, would be behind
// this rank and ahead of the other, and all three would wait for each other. (If
// that is a rank that gathered before it could know, all are in step.)
func (b *Boxes) unaware(late []int) []int {
	if !b.back {
		return late
	}
	for _, r := range b.ch.receivers {
		if !b.Job.Marks.Heard(r) {
			late = append(late, r)
		}
	}
	b.back = len(late) > 0
	return late
}

func (o *scattering) blocked() {
	o.b.Job.Marks.Note(core.InScatter, o.b.ID, o.b.Clock())
}

// makeRoom looks at the receivers that have not acknowledged the update whose
// slot is needed. late are those that still will; one that is away will see no
// update older than its next collective, so it need not.
func (o *scattering) makeRoom() error {
	b := o.b
	o.late = o.late[:0]
	oldest := b.Head.Load() + 1 - b.ch.mode.Rule.N
	for _, r := range b.ch.readers {
		if b.ch.out.Acked(r) >= oldest {
			continue
		}
		switch standing, err := b.Job.Standing(r, nil); rule.About(standing) {
		case rule.Fail:
			return err
		case rule.Without:
			b.ch.out.Excuse(r)
		case rule.Wait:
			o.late = append(o.late, r)
		}
	}
	return nil
}

// count books what was sent.
func (o *scattering) count() {
	to := o.to
	if to == nil {
		to = o.b.ch.receivers
	}
	for _, r := range to {
		e := &o.b.Counts.Edges[r]
		e.SentMessages++
		e.SentBytes += uint64(o.n)
	}
	o.b.Job.Marks.Trace.Scattered(o.b.begun, o.b.Member, o.b.Clock(), to, o.n*len(to))
}

func (o *scattering) Late() []int { return o.late }

func (o *scattering) Name() string { return o.b.Called("scatter") }

func (o *scattering) Waiting() core.Wait {
	w := o.b.Waiting(o.Name(), o.late)
	w.Whom += " to fold an earlier update"
	return w
}

func (o *scattering) GiveUp() {
	o.b.Job.Marks.Note(core.InCompute, o.b.ID, o.b.Clock())
}

// CheckWeight refuses what is not a weight.
func CheckWeight(weight float64) error {
	const most = 1e300
	if !(weight >= 0) || weight > most {
		return say.Errorf(core.ErrInvalid, "weight=%v: expected a number from 0 to %v", weight, most)
	}
	return nil
}
