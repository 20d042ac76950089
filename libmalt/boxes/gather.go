package boxes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"malt/internal/say"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Begin waits as the rule says and returns the updates to fold, in the order of ranks. Until
// End no other call on b is let in. An error needs no End.
func (b *Boxes) Begin(ctx context.Context) ([]codec.Update, error) {
	if err := b.Codec.Shows(); err != nil {
		return nil, err
	}
	if err := b.gatherRaw(ctx); err != nil {
		return nil, err
	}
	b.Codec.Show(b.updates)
	b.lent = time.Now()
	return b.updates, nil
}

// gatherRaw is Begin for folds of this package.
func (b *Boxes) gatherRaw(ctx context.Context) error {
	op := &b.gathering
	if err := b.Run(ctx, true, op, func() error { return op.start(b) }); err != nil {
		return err
	}
	b.held.Store(true)
	return b.decode()
}

// decode has the codec read the updates; where it cannot, the gather has ended.
func (b *Boxes) decode() error {
	b.begun = b.Job.Marks.Trace.Begin()
	err := b.Codec.Decode(b.updates)
	if err != nil {
		err = cmp.Or(err, b.End(true))
	}
	return err
}

// End ends what Begin began. With folded the updates count as seen and, in
// notify-ack, are acknowledged: after the fold, since the sender reuses their
// memory. Without, the next gather gets them again.
func (b *Boxes) End(folded bool) error {
	if !b.held.CompareAndSwap(true, false) {
		return say.Errorf(core.ErrState, "no gather of %s is open", b).Try("Begin one first.")
	}
	if !b.lent.IsZero() {
		b.Counts.FoldTime += time.Since(b.lent)
		b.lent = time.Time{}
	}
	if folded {
		b.record()
		b.folded()
		b.tell()
		b.compare()
	}
	if b.queues() {
		b.Job.LeaveQueue()
	}
	clear(b.updates)
	b.updates = b.updates[:0]
	b.Free()
	return nil
}

// tell shows others the age of what was folded.
func (b *Boxes) tell() {
	if len(b.updates) == 0 {
		return
	}
	oldest, from, ages, same := b.updates[0].Age, []int(nil), []byte(nil), true
	for _, u := range b.updates {
		oldest, same = max(oldest, u.Age), same && u.Age == 0
		if b.begun != 0 {
			age := int8(core.NoAge)
			if -math.MaxInt8 <= u.Age && u.Age <= math.MaxInt8 {
				age = int8(u.Age)
			}
			from, ages = append(from, u.Rank), append(ages, byte(age))
		}
	}
	if same {
		ages = nil
	}
	b.Job.Marks.Trace.Aged(oldest)
	b.Job.Marks.Trace.Folded(b.begun, b.Member, b.Clock(), from, ages)
}

// compare looks now and then, in async, whether a sender is much slower than this rank.
func (b *Boxes) compare() {
	if b.ch.mode.Rule.Kind != rule.Async || b.Clock() < b.compared+rule.PaceClocks {
		return
	}
	b.compared = b.Clock()
	now := time.Now()
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		clock, gone := src.inbox.Clock()
		if standing, _ := b.Job.Standing(src.rank, gone); !src.sends || standing != rule.Present {
			src.pace = rule.Pace{}
		} else if in, over, slow := src.pace.Slow(now, b.Clock(), clock); slow {
			b.Warn(core.Trouble{Kind: core.Slow, Rank: src.rank, Own: in.Own, Senders: in.Senders, Over: over})
		}
	}
}

// folded marks all held updates as seen.
func (b *Boxes) folded() {
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if !src.has {
			continue
		}
		if src.held.Data != nil && b.counting.fresh(src.held.Seq, src.read) {
			src.folded++
			src.edge.Fold(b.age(src.held.Clock), len(src.held.Data))
			src.read = src.held.Seq
		}
		b.counting.folded(src)
	}
	b.pass()
	b.bury()
	if b.owedAt > 0 {
		b.averaged()
		return
	}
	if b.unfolds > 0 {
		b.unfolds--
	}
	b.Counts.Gathers++
}

func (b *Boxes) age(clock uint64) int64 { return int64(b.Clock() - clock) }

// gathering is a gather on its way to its updates.
type gathering struct {
	b      *Boxes
	method string // the caller's
	rule   rule.Rule
	late   []int
	missed []int // ranks without which the gather would go on, of an object with uneven=error
	lost   []int // ranks that died before they came so far, while the job goes on
}

func (o *gathering) start(b *Boxes) error {
	if !b.ch.mode.Rule.MayGather(b.unfolds) {
		return say.Errorf(core.ErrState, "%s: no scatter() since the last gather(); %s needs one before each", b.Called("gather"), b.ch.mode.Rule).
			In(b.Called("gather")).Try("Call scatter() first, or sync(), which does both.")
	}
	if b.void {
		return say.Errorf(core.ErrState, "%s: a collective call, such as barrier, left nothing to gather", b.Called("gather")).
			In(b.Called("gather")).At("in notify-ack, updates scattered before such a call count as seen after it").Try("Gather before such a call, or scatter again.")
	}
	o.b, o.method, o.rule, o.late, o.missed = b, "gather", b.ch.mode.Rule, o.late[:0], o.missed[:0]
	return nil
}

func (o *gathering) Step() (bool, error) {
	b := o.b
	queue := b.queues()
	if queue {
		if err := b.Job.UseQueue(b); err != nil {
			return false, err
		}
	}
	settled, err := o.adopt()
	if err == nil && settled {
		err = o.receive()
	}
	if err == nil && settled && len(o.late) == 0 {
		err = o.uneven()
	}
	if queue && (err != nil || len(o.late) > 0) {
		b.Job.LeaveQueue() // else End does
	}
	if err != nil {
		o.GiveUp()
		return false, err
	}
	if len(o.late) > 0 || !settled {
		b.Job.Marks.Note(core.InGather, b.ID, b.Clock())
		return false, nil
	}
	o.collect()
	b.Job.Marks.Note(core.InCompute, b.ID, b.Clock())
	return true, nil
}

// receive gets what the rule asks for; late are those it has to wait for.
func (o *gathering) receive() error {
	o.missed, o.lost = o.missed[:0], o.lost[:0]
	if o.late = o.b.Route.Writers(o.late[:0]); len(o.late) > 0 {
		return nil
	}
	switch mode := o.b.ch.mode.Rule.Boxes(); {
	case mode == rdma.ByClock:
		return o.lockstep()
	case mode.Depth() > 0:
		return o.queued()
	}
	return o.newest()
}

// behind looks at one rank's clock: late gets the rank if the gather must wait
// for it. What counts for a rank that has died is the clock that death has
// frozen, not an earlier look at it: or survivors would differ in who took part.
func (o *gathering) behind(rank int, look func() (clock uint64, gone error)) error {
	r, own := o.rule, o.b.Clock()
	clock, gone := look()
	if !r.Waits(own, clock) {
		return nil
	}
	standing, death := o.b.Job.Standing(rank, gone)
	verdict := rule.About(standing)
	if standing == rule.Lost && o.b.inStep() && o.b.ch.view.Has(rank) {
		verdict = rule.Wait // until this rank is settled in the view without it
	}
	if verdict == rule.Wait {
		o.late = append(o.late, rank)
	} else if verdict == rule.Fail || standing == rule.Lost || o.b.ch.mode.Even {
		// Once more: it may have come this far just before it died or went away.
		clock, _ = look()
		switch {
		case !r.Waits(own, clock):
		case standing == rule.Lost:
			o.lost = append(o.lost, rank)
		default:
			o.missed = append(o.missed, rank)
			return death
		}
	}
	return nil
}

// uneven fails, of an object with uneven=error, where the gather would go on without
// ranks that it would have waited for, had they not gone. Nothing is folded then, and
// what has been taken stays.
func (o *gathering) uneven() error {
	b := o.b
	if !b.ch.mode.Even || len(o.missed) == 0 {
		return nil
	}
	where, _ := b.Job.Marks.Describe(o.missed, b.Job.NameOf)
	return say.Errorf(core.ErrLeft, "%s would continue without %s, which made fewer steps", o.Name(), say.Ranks(o.missed)).
		In(o.Name()).At("%s", where).More("uneven").
		Try(`Give every rank as many steps, as malt.shard(…, even="pad") does, or make the vector with uneven="ok".`)
}

// lockstep waits until every rank has arrived at this rank's clock, which it
// does after it has published, and takes the in-neighbours' updates of exactly
// that clock: the same set on all ranks. A rank that goes away has arrived
// before or never will, so that the order of the two loads does not matter: At
// finds what there is.
func (o *gathering) lockstep() error {
	b := o.b
	if b.owedAt > 0 {
		switch at, err := b.Route.Step(); {
		case err != nil || at == core.Arrived:
			return err
		case at == core.Underway:
			o.late = append(o.late, b.Route.Late()...)
			return nil
		}
		b.owedAt = 0 // another rank has decided
	}
	for r, in := range b.ch.clocks {
		if in == nil { // this rank's own, or that of one which died and is behind
			continue
		}
		look := in.Clock
		if b.inStep() && !b.ch.view.Has(r) {
			look = func() (uint64, error) { return b.counts(r), b.Job.T.State(r) }
		}
		if err := o.behind(r, look); err != nil {
			return err
		}
	}
	if len(o.late) > 0 {
		return nil
	}
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if src.has && src.held.Clock == b.Clock() {
			continue // kept by End(false)
		}
		if err := b.counting.take(o, src); err != nil {
			return err
		}
	}
	return nil
}

// takeAt takes the update of this clock.
func (o *gathering) takeAt(src *source) (err error) {
	b := o.b
	if slices.Contains(o.lost, src.rank) {
		return nil // it may have reached some of its readers, and not others
	}
	if src.below > 0 && b.Clock() >= src.below {
		return nil // it may be there for some of its readers, and not for others
	}
	if src.has {
		o.drop(src) // a collective has raised the clock since
	}
	if src.held, src.has = b.given(src); !src.has {
		src.held, src.has, err = src.exactly(b.Clock())
	}
	return err
}

// newest waits, in ssp, until no live in-neighbour is too far behind, and takes
// each one's newest update.
func (o *gathering) newest() error {
	b := o.b
	if b.replay != nil {
		if over, err := o.replayed(); !over || err != nil {
			return err
		}
	}
	if o.rule.WaitsForClocks() {
		for i := range b.ch.sources {
			src := &b.ch.sources[i]
			if !src.sends {
				continue
			}
			if err := o.behind(src.rank, src.inbox.Clock); err != nil {
				return err
			}
		}
	}
	if len(o.late) > 0 {
		return nil
	}
	for i := range b.ch.sources {
		if err := b.counting.take(o, &b.ch.sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeNewest takes the newest update, unless it is too old.
func (o *gathering) takeNewest(src *source) error {
	u, ok, err := src.inbox.Next()
	if err != nil {
		return err
	}
	if ok {
		src.held, src.has = u, true
	}
	if src.has && !o.rule.Takes(o.b.Clock(), src.held.Clock) {
		o.drop(src)
	}
	return nil
}

// drop gives an update back that is not folded.
func (o *gathering) drop(src *source) {
	if o.b.Codec.Repeats() {
		src.held, src.has = rdma.Update{}, false
	} else {
		src.release()
	}
}

// queued waits until the next update of every live in-neighbour is there.
//
// What is taken, and who is done without, is what there is at one moment: the last
// drain, which finds nothing more, makes sure of that. Else a rank that is back and
// has sent again could be missed, and one that has folded that update already be
// taken: this rank would be behind the first and ahead of the second, and in the
// end all three wait for each other.
func (o *gathering) queued() error {
	for {
		if took, err := o.drain(); !took || err != nil || len(o.late) > 0 {
			return err
		}
	}
}

// drain takes what is there. late are the ranks that have to be waited for.
func (o *gathering) drain() (took bool, err error) {
	b := o.b
	o.missed, o.lost = o.missed[:0], o.lost[:0]
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if src.reads && !src.sends && !src.has && b.ch.view.Has(src.rank) {
			src.reads = !src.queue.Over(b.ch.view.Generation)
		}
		if src.reads && !src.has {
			// All before Next: what was sent before the rank went is not lost.
			_, gone := src.inbox.Clock()
			standing, death := b.Job.Standing(src.rank, gone)
			if standing == rule.Away && !src.inbox.Returned() && b.Job.T.State(src.rank) == nil {
				standing = rule.Present
			}
			u, ok, err := src.inbox.Next()
			if err != nil {
				return took, err
			}
			verdict := rule.About(standing)
			switch {
			case ok:
				src.held, src.has, took = u, true, true
			case verdict == rule.Wait:
				o.late = append(o.late, src.rank)
			case standing == rule.Lost:
				o.lost = append(o.lost, src.rank)
			case verdict == rule.Without:
				o.missed = append(o.missed, src.rank)
			default:
				return took, death
			}
		}
	}
	return took, nil
}

// collect lists the held updates for the fold.
func (o *gathering) collect() {
	b := o.b
	b.counting.aged(o.rule)
	b.updates = b.updates[:0]
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if src.has && src.held.Data != nil {
			src.taken = src.held.Clock
			b.updates = append(b.updates, codec.Update{
				Data: src.held.Data, Rank: src.rank, Clock: src.held.Clock,
				Age: b.age(src.held.Clock), Weight: src.held.Weight,
				Kind: spvec.Kind(src.held.Kind), Seq: src.held.Seq, Read: src.read,
			})
		}
	}
}

func (o *gathering) Name() string { return o.b.Called(o.method) }

func (o *gathering) Late() []int { return o.late }

func (o *gathering) Waiting() core.Wait { return o.b.Waiting(o.Name(), o.late) }

func (o *gathering) GiveUp() {
	o.b.Job.Marks.Note(core.InCompute, o.b.ID, o.b.Clock())
}
