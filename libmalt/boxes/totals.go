package boxes

import (
	"math"
	"slices"

	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// totals counts of each sender the newest update, until a newer one has come: its slot stays
// pinned from one gather to the next, and is copied only where it cannot stay. Those of
// another era are as if they had not come: there the same changes are part of the start.
//
// Of a rank that is left out, on another host, the survivors may have taken different totals. The newest
// of these counts on all (see package core): from where a rank has told which one it has, it
// takes no newer one but that which it is given.
type totals struct {
	b     *Boxes
	codec codec.Cumulative // the boxes'
	last  []rdma.Stamp     // by rank: of the total that the codec keeps, or kept in an earlier era
	told  []bool           // by rank
	old   uint64           // see age
}

func newTotals(b *Boxes, c codec.Cumulative) *totals {
	return &totals{b: b, codec: c, last: make([]rdma.Stamp, b.Job.Size), told: make([]bool, b.Job.Size)}
}

// take takes the newest total of a sender, in lock-step up to this clock: so all ranks have
// the same ones. A rank that is behind is away or dead, and what it sends when it is back counts at
// its next clock.
func (t *totals) take(_ *gathering, src *source) error { return t.upTo(t.b.Clock(), src) }

func (t *totals) upTo(clock uint64, src *source) error {
	if t.b.Job.Settles() && (t.told[src.rank] || !t.b.ch.view.Has(src.rank)) {
		return t.left(src, clock)
	}
	return t.next(src)
}

func (t *totals) next(src *source) (err error) {
	b := t.b
	clock, _ := src.inbox.Clock() // before the look: the total is at least so new
	src.at = max(clock, b.level)
	own := b.Clock()
	var u rdma.Update
	var ok bool
	switch {
	case b.ch.mode.Rule.Boxes() == rdma.Newest:
		u, ok, err = src.inbox.Next()
	case clock <= own+1:
		u, ok, err = src.inbox.At(min(clock, own))
	default: // this rank was away; and a newer total holds the older one
		t.keep(src) // At lets go of it
		u, ok, err = src.inbox.At(clock)
	}
	if !ok || err != nil {
		return err
	}
	switch src.held, src.has = u, true; {
	case u.Tag > b.era:
		src.release()
		return core.CountsNoMore(b.Called("gather"), src.rank)
	case u.Tag < b.era:
		src.release()
	default:
		src.at = max(src.at, u.Clock)
	}
	return nil
}

// look takes it: those of another era are not to be counted as lost. An error comes again, in
// the gather.
func (t *totals) look(src *source) { _ = t.take(nil, src) }

// aged finds the age of those that are not away, and of those that went away with changes that have
// come since.
func (t *totals) aged(r rule.Rule) {
	b := t.b
	t.old = 0
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		if b.ch.view.Has(src.rank) && src.at < b.Clock() && !r.Waits(b.Clock(), src.at) { // else it was away
			_, gone := src.inbox.Clock()
			standing, _ := b.Job.Standing(src.rank, gone)
			if clock, _ := src.inbox.Clock(); rule.About(standing) == rule.Wait || clock > src.at {
				t.old = max(t.old, b.Clock()-src.at)
			}
		}
	}
}

func (t *totals) fresh(seq, read uint64) bool { return seq > read }

func (t *totals) folded(*source) {}

func (t *totals) keep(src *source) {
	if src.has {
		t.codec.Keep(src.rank, src.held.Data)
		t.last[src.rank] = src.held.Stamp
		src.release()
	}
}

// left takes what counts of a rank that is left out, in lock-step up to clock.
func (t *totals) left(src *source, clock uint64) error {
	b := t.b
	counts, given := b.Counted(src.rank)
	if !b.inStep() || clock > counts {
		clock = counts
	}
	switch {
	case clock <= t.last[src.rank].Clock, src.has && clock <= src.held.Clock:
	case given.Data != nil && given.Clock == clock:
		if given.Tag == b.era { // else this rank is still in the call that begins it
			t.keep(src)
			src.held, src.has = given, true
		}
	case b.inStep():
		t.keep(src) // At lets go of it
		u, ok, err := src.inbox.At(clock)
		if src.held, src.has = u, ok && err == nil; src.has && u.Tag != b.era {
			src.release()
		}
		return err
	}
	return nil
}

func (t *totals) stand(rank int, src *source) (at core.Stand, ok bool) {
	if src != nil {
		if !t.told[rank] {
			_ = t.next(src) // after an error the last one counts
		}
		t.keep(src)
	}
	t.told[rank] = true
	clock := t.last[rank].Clock
	return core.Stand{Due: clock, Folded: clock, Has: true}, true
}

func (t *totals) kept(rank int) (u rdma.Update) {
	if u.Stamp = t.last[rank]; u.Clock > 0 {
		u.Data = t.codec.Kept(rank)
	}
	return u
}

// skip has nothing to do: what was sent before the call counts after it.
func (t *totals) skip([]uint64) {}

func (t *totals) settled(summed []int) {
	for i := range t.b.ch.sources {
		src := &t.b.ch.sources[i]
		if summed != nil && !slices.Contains(summed, src.rank) { // it has died
			_ = t.upTo(math.MaxUint64, src) // after an error the last one counts
			t.keep(src)
		} else if src.has {
			src.release()
		}
	}
	t.b.era = t.b.Job.Calls()
}

// age is how many clocks of the rank that was farthest behind the last gather lacked, of
// those that are not away.
func (t *totals) age() uint64 { return t.old }

func (t *totals) share(weight float64) ([]byte, uint64) { return t.codec.Share(weight), t.b.era }
