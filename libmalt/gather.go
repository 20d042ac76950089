package libmalt

import (
	"context"
	"strings"

	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Begin waits as the consistency says and returns the updates to fold, in the
// order of ranks. Until End no other call on s is let in. An error needs no End.
func (s *Segment) Begin(ctx context.Context) ([]Update, error) {
	op := &s.gathering
	err := s.run(ctx, "gather", true, op, func() error { return op.begin(s) })
	if err != nil {
		return nil, err
	}
	s.held.Store(true)
	return s.updates, nil
}

// End ends what Begin began. With folded the updates count as seen and, in
// notify-ack, are acknowledged: after the fold, since the sender reuses their
// memory. Without, the next gather gets them again.
func (s *Segment) End(folded bool) error {
	if !s.held.CompareAndSwap(true, false) {
		return say.Errorf(ErrState, "no gather of %s is open", s).Try("Begin one first.")
	}
	if folded {
		s.folded()
	}
	if s.mode.consistency.Kind == consistency.NotifyAck {
		s.w.leaveQueue()
	}
	clear(s.updates)
	s.updates = s.updates[:0]
	s.gate.mu.Unlock()
	return nil
}

// folded marks all held updates as seen.
func (s *Segment) folded() {
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		if !src.has {
			continue
		}
		if src.held.Data != nil {
			src.folded++
			src.edge.fold(s.age(src.held.Clock), len(src.held.Data))
			src.read = src.held.Seq
		}
		src.release()
	}
	if s.averagedAt > 0 {
		s.averaged()
		return
	}
	if s.unfolds > 0 {
		s.unfolds--
	}
	s.stats.Gathers++
}

func (s *Segment) age(clock uint64) int64 { return int64(s.Clock() - clock) }

// gathering is a gather on its way to its updates.
type gathering struct {
	s      *Segment
	late   []int
	missed []int // ranks without which the gather would go on, of an object with uneven=error
	watch  watch
}

func (o *gathering) begin(s *Segment) error {
	if s.mode.consistency.Kind == consistency.BSP && s.unfolds == 0 {
		return say.Errorf(ErrState, "%s: no scatter since the last gather, and in bsp each gather folds one", s.called("gather")).
			In(s.called("gather")).Try("Call scatter() first, or sync(), which does both.")
	}
	if s.void {
		return say.Errorf(ErrState, "%s: nothing is left to gather since the last collective call, such as barrier", s.called("gather")).
			In(s.called("gather")).At("in notify-ack, what was scattered before such a call counts as seen after it").Try("Gather before that call, or scatter again.")
	}
	*o = gathering{s: s, late: o.late[:0], missed: o.missed[:0], watch: o.watch.again()}
	return nil
}

func (o *gathering) step() (bool, error) {
	s := o.s
	queue := s.mode.consistency.Kind == consistency.NotifyAck
	if queue {
		if err := s.w.useQueue(s); err != nil {
			return false, err
		}
	}
	s.catchUp()
	err := o.take()
	if err == nil && len(o.late) == 0 {
		err = o.uneven()
	}
	if queue && (err != nil || len(o.late) > 0) {
		s.w.leaveQueue() // else End does
	}
	if err != nil {
		o.giveUp()
		return false, err
	}
	if len(o.late) > 0 {
		s.w.note(inGather, s.id, s.Clock())
		o.watch.blocked(s, o.late)
		return false, nil
	}
	o.collect()
	o.watch.end(s)
	s.w.note(inCompute, s.id, s.Clock())
	return true, nil
}

// take gets what the consistency asks for; late are those it has to wait for.
func (o *gathering) take() error {
	o.missed = o.missed[:0]
	if o.late = o.s.unreduced(o.late[:0]); len(o.late) > 0 {
		return nil
	}
	switch o.s.mode.consistency.Kind {
	case consistency.BSP:
		return o.lockstep()
	case consistency.NotifyAck:
		return o.queued()
	}
	return o.newest()
}

// missing decides about a rank whose clock (or next update) is not there yet:
// wait for it, do without it, or fail. gone is the box's word on it: a rank that
// has closed the object, or ended, is not waited for, unless it died.
func (s *Segment) missing(rank int, gone error) (wait bool, err error) {
	away := gone != nil
	if !away {
		away, gone = s.w.isAway(rank)
	}
	dead := deathIn(gone)
	if dead == nil && gone != nil {
		dead = deathIn(s.w.t.State(rank))
	}
	if dead != nil {
		return false, dead
	}
	return !away && gone == nil, nil
}

// behind looks at one rank's clock: late gets the rank if the gather must wait
// for it. What counts for a rank that has died is the clock that death has
// frozen, not an earlier look at it: or survivors would differ in who took part.
func (o *gathering) behind(rank int, look func() (clock uint64, gone error)) error {
	mode, own := o.s.mode.consistency, o.s.Clock()
	clock, gone := look()
	if !mode.Waits(own, consistency.Peer{Clock: clock}) {
		return nil
	}
	wait, dead := o.s.missing(rank, gone)
	if dead != nil {
		if clock, _ = look(); mode.Waits(own, consistency.Peer{Clock: clock}) {
			return dead
		}
	} else if wait {
		o.late = append(o.late, rank)
	} else if o.s.mode.even {
		// Once more, as above: it may have come this far just before it went away.
		if clock, _ = look(); mode.Waits(own, consistency.Peer{Clock: clock}) {
			o.missed = append(o.missed, rank)
		}
	}
	return nil
}

// uneven fails, of an object with uneven=error, where the gather would go on without
// ranks that it would have waited for, had they not gone. Nothing is folded then, and
// what has been taken stays.
func (o *gathering) uneven() error {
	s := o.s
	if !s.mode.even || len(o.missed) == 0 {
		return nil
	}
	where, _ := s.w.describe(o.missed)
	return say.Errorf(ErrLeft, "%s would go on without %s, which made fewer steps", o.call(), strings.TrimSuffix(listed(o.missed), " only")).
		In(o.call()).At("%s", where).More("uneven").
		Try(`Give every rank equally many, as malt.shard(…, even="pad") does, or make the vector with uneven="ok".`)
}

// lockstep waits until every rank has arrived at this rank's clock, which it
// does after it has published, and takes the in-neighbours' updates of exactly
// that clock: the same set on all ranks. A rank that goes away has arrived
// before or never will, so that the order of the two loads does not matter: At
// finds what there is.
func (o *gathering) lockstep() error {
	s := o.s
	if s.averagedAt > 0 && s.across == nil {
		o.late = s.below(wordStep, 2*s.averagedAt, o.late)
		return nil
	}
	if s.averagedAt > 0 {
		x := &s.syncing.exchange
		if done, err := x.step(); done || err != nil {
			return err
		}
		if !x.boxes {
			o.late = append(o.late, x.late...)
			return nil
		}
		s.averagedAt = 0 // another rank has decided
	}
	for r, in := range s.ch.clocks {
		if r == s.w.rank {
			continue
		}
		if err := o.behind(r, in.Clock); err != nil {
			return err
		}
	}
	if len(o.late) > 0 {
		return nil
	}
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		if src.has && src.held.Clock == s.Clock() {
			continue // kept by End(false)
		}
		if src.has {
			o.drop(src) // a collective has raised the clock since
		}
		var err error
		if src.held, src.has, err = src.inbox.At(s.Clock()); err != nil {
			return err
		}
	}
	return nil
}

// newest waits, in ssp, until no live in-neighbour is too far behind, and takes
// each one's newest update.
func (o *gathering) newest() error {
	s := o.s
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		if s.mode.consistency.Kind == consistency.Async {
			break
		}
		if err := o.behind(src.rank, src.inbox.Clock); err != nil {
			return err
		}
	}
	if len(o.late) > 0 {
		return nil
	}
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		u, ok, err := src.inbox.Next()
		if err != nil {
			return err
		}
		if ok {
			src.held, src.has = u, true
		}
		if src.has && !s.mode.consistency.Takes(s.Clock(), src.held.Clock) {
			o.drop(src)
		}
	}
	return nil
}

// drop gives an update back that is not folded. Of a sparse model it is not
// released: its rows come again.
func (o *gathering) drop(src *source) {
	if o.s.model() {
		src.held, src.has = rdma.Update{}, false
	} else {
		src.release()
	}
}

// queued waits until the next update of every live in-neighbour is there.
//
// What is taken, and who is done without, is what there is at one moment: the last
// look, which finds nothing more, makes sure of that. Else a rank that is back and
// has sent again could be missed, and one that has folded that update already be
// taken: this rank would be behind the first and ahead of the second, and in the
// end all three wait for each other.
func (o *gathering) queued() error {
	for {
		if took, err := o.look(); !took || err != nil || len(o.late) > 0 {
			return err
		}
	}
}

// look takes what is there. late are the ranks that have to be waited for.
func (o *gathering) look() (took bool, err error) {
	s := o.s
	o.missed = o.missed[:0]
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		if !src.has {
			// All before Next: what was sent before the rank went is not lost.
			_, gone := src.inbox.Clock()
			wait, failed := s.missing(src.rank, gone)
			wait = wait || !src.inbox.Returned() && s.w.t.State(src.rank) == nil
			u, ok, err := src.inbox.Next()
			if err != nil {
				return took, err
			}
			if ok {
				src.held, src.has, took = u, true, true
			} else if failed != nil {
				return took, failed
			} else if wait {
				o.late = append(o.late, src.rank)
			} else {
				o.missed = append(o.missed, src.rank)
			}
		}
	}
	return took, nil
}

// collect lists the held updates for the fold.
func (o *gathering) collect() {
	s := o.s
	s.updates = s.updates[:0]
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		if src.has && src.held.Data != nil {
			s.updates = append(s.updates, Update{
				Data: src.held.Data, Rank: src.rank, Clock: src.held.Clock,
				Age: s.age(src.held.Clock), Weight: src.held.Weight,
				kind: spvec.Kind(src.held.Kind), seq: src.held.Seq, read: src.read,
			})
		}
	}
}

func (o *gathering) suspend() { o.watch.end(o.s) }

func (o *gathering) call() string { return o.s.called("gather") }

func (o *gathering) waiting() wait { return o.s.waiting(o.call(), o.late) }

func (o *gathering) giveUp() {
	o.watch.end(o.s)
	o.s.w.note(inCompute, o.s.id, o.s.Clock())
}
