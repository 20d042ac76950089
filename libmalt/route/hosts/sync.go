package hosts

import (
	"errors"
	"math"
	"time"

	"malt/internal/say"
	"malt/libmalt/exchange"
	"malt/libmalt/internal/core"
	"malt/libmalt/narrow"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// sync is a sync in progress, or the last one.
type sync struct {
	r      *Route
	op     reduce.Op
	weight float64
	clock  uint64

	begun   bool // the exchange: all of this host have arrived
	stepped bool // this rank's step is 2e
	done    bool // this rank, as the lowest, has said so for its host
	copied  bool // the array has the result
	aborted bool // by this rank, or after another
	passed  bool // a collective call has levelled the clocks since: whatever the others decided, this rank takes boxes
	sent    bool // the array is in the box

	terms []reduce.Subtotal // of the ranks of this host
	parts []reduce.Subtotal
	late  []int
}

// Begin arrives, unless a rank has died. Only sums and means can travel in fewer bytes: others take boxes.
func (r *Route) Begin(clock uint64, op reduce.Op, weight float64) bool {
	if !r.whole() || r.wire != narrow.Exact && op != reduce.Sum && op != reduce.Mean {
		return false
	}
	o := &r.sync
	*o = sync{
		r: r, op: op, weight: weight, clock: clock,
		terms: o.terms[:0], parts: o.parts[:0], late: o.late[:0],
	}
	r.near.Put(wordOp, uint64(op))
	r.near.Put(wordWeight, math.Float64bits(weight))
	r.near.Set(wordStep, 2*clock-1)
	r.near.Ring()
	return true
}

// Step goes on to the result, or to an abort.
func (r *Route) Step() (core.Outcome, error) {
	o := &r.sync
	if !o.over() {
		if settled, err := o.settled(); !settled || err != nil {
			return core.Underway, err
		}
	}
	if !o.over() {
		if err := o.advance(); err != nil {
			return core.Underway, err
		}
		if !o.over() && !o.finished() {
			o.aborted = o.forsaken()
		}
	}
	switch {
	case o.passed:
		return core.UseBoxes, nil
	case o.copied:
		return core.Arrived, nil
	case o.aborted:
		return core.InBoxes, o.publish()
	}
	return core.Underway, nil
}

func (r *Route) Late() []int { return r.sync.late }

// Leave aborts, unless this rank has finished.
func (r *Route) Leave() (core.Outcome, error) {
	o := &r.sync
	if !o.aborted && !o.finished() {
		o.aborted = true
	}
	if o.aborted {
		return core.InBoxes, o.publish()
	}
	return core.Owed, o.publish()
}

// over tells whether it ends here, whatever the others do.
func (o *sync) over() bool { return o.copied || o.aborted || o.passed }

// finished tells whether no rank waits for this one.
func (o *sync) finished() bool {
	switch r := o.r; {
	case !o.begun:
		return false
	case len(r.ranks) == 1:
		return r.exchange.Finished()
	case r.ranks[0] == r.rank:
		return o.done
	}
	return o.stepped
}

// forsaken tells whether one of the ranks that the last step waited for will not
// come, as far as can be told.
func (o *sync) forsaken() bool {
	for _, rank := range o.late {
		clock, gone := o.r.o.Heard(rank)
		if clock >= o.clock {
			return true // it has scattered by itself, though not to this rank
		}
		if wait, dead := o.r.o.Missing(rank, gone); dead != nil || !wait {
			return true
		}
	}
	return false
}

// settled tells whether this rank is settled in the newest view. In one after the first the
// sync ends: this rank takes the result that another one has, or all abort.
func (o *sync) settled() (bool, error) {
	r := o.r
	late, generation, err := r.o.Settled()
	if err != nil || generation <= 1 {
		o.late = append(o.late[:0], late...)
		return generation > 0, err
	}
	given, ok := r.o.Given(o.clock)
	data := r.o.Array()
	switch {
	case !ok:
		o.aborted = true
		return true, nil
	case given.Weight > 0 && len(given.Data) != len(data):
		return false, say.Errorf(rdma.ErrCorrupt, "%s: a rank gave a result of %d bytes, expected %d", r.o.Called("sync"), len(given.Data), len(data))
	case given.Weight > 0:
		reduce.Copy(data, given.Data)
	}
	o.copied, r.completed = true, o.clock
	return true, nil
}

// Stand implements core.Route.
func (r *Route) Stand() (core.Stand, bool) {
	return core.Stand{Due: r.sync.clock, Folded: r.completed}, true
}

// Held implements core.Route: a result lies in the exchange until all ranks have begun the next.
func (r *Route) Held(clock uint64) (u rdma.Update) {
	if clock != r.completed {
		return u
	}
	u.Clock, u.Data = clock, make([]byte, len(r.o.Array()))
	if !r.result(u.Data) {
		u.Data = nil
		return u
	}
	u.Weight = 1
	return u
}

// advance goes as far as it can. late are the ranks that it then lacks.
func (o *sync) advance() error {
	r := o.r
	r.o.CatchUp()
	if at := r.o.Clock(); at > o.clock || at == o.clock && !o.sent {
		o.passed = true // the box of a rank that has aborted may say so no longer
		return nil
	}
	if follow, err := r.o.InBox(o.clock, asInsurance); follow || err != nil {
		o.aborted = follow
		return err
	}
	o.late = o.late[:0]
	if !o.begun {
		if o.late = o.below(2*o.clock - 1); len(o.late) > 0 {
			return nil
		}
		if !o.alike() {
			o.aborted = true
			return nil
		}
		o.begun = true
		sum := o.total()
		r.exchange.Begin(o.clock, rdma.Stamp{Kind: uint16(o.op), Age: uint64(sum.Count), Weight: sum.Weight}, o.op.Weighted())
	}
	if err := r.exchange.Step(o); err != nil {
		if errors.Is(err, exchange.ErrDiffers) {
			o.aborted = true
			return nil
		}
		return err
	}
	if !r.exchange.Complete() {
		o.late = r.exchange.Late(o.late)
		return nil
	}
	if len(r.ranks) > 1 {
		if !o.stepped {
			o.fillScratch()
			o.stepped = true
			r.near.Set(wordStep, 2*o.clock)
			r.near.Ring()
		}
		if o.late = o.below(2 * o.clock); len(o.late) > 0 {
			return nil
		}
		if !o.done && r.ranks[0] == r.rank {
			o.done = true
			r.words.Set(wordDone, o.clock)
		}
	}
	for _, rank := range r.lowest {
		if at, _ := r.words.Get(rank, wordDone); at < o.clock {
			o.late = append(o.late, rank)
		}
	}
	if len(o.late) == 0 {
		o.copyResult()
	}
	return nil
}

// below lists the ranks of this host that have yet to reach a step.
func (o *sync) below(step uint64) []int {
	o.late = o.late[:0]
	for _, rank := range o.r.ranks {
		if at := o.r.near.Get(rank, wordStep); at < step {
			o.late = append(o.late, rank)
		}
	}
	return o.late
}

// alike tells whether all ranks of this host have the same fold.
func (o *sync) alike() bool {
	for _, rank := range o.r.ranks {
		if op := o.r.near.Get(rank, wordOp); reduce.Op(op) != o.op {
			return false
		}
	}
	return true
}

// total is what this host will send, without the data. All its ranks have arrived, so
// their weights stay as they are.
func (o *sync) total() reduce.Subtotal {
	o.terms = o.terms[:0]
	for _, rank := range o.r.ranks {
		bits := o.r.near.Get(rank, wordWeight)
		o.terms = append(o.terms, reduce.Subtotal{Rank: rank, Count: 1, Weight: math.Float64frombits(bits)})
	}
	a := &o.r.adder
	a.From = reduce.None
	a.Terms = append(a.Terms[:0], o.terms...)
	return a.Total(o.op)
}

// Part implements exchange.Work.
func (o *sync) Part(dst []byte, off int) {
	r, a := o.r, &o.r.adder
	if len(o.terms) == 1 {
		reduce.Copy(dst, r.o.Array()[off:off+len(dst)])
		return
	}
	a.Terms = a.Terms[:0]
	for i, rank := range r.ranks {
		t := o.terms[i]
		t.Data = r.near.Bytes(rank)[off : off+len(dst)]
		a.Terms = append(a.Terms, t)
	}
	a.AddTerms(o.op, r.o.Runs(), off, dst)
	clear(a.Terms)
}

// Merge implements exchange.Work. The weight is 0 if no part has a weight: all ranks
// keep their values then.
func (o *sync) Merge(dst []byte, off int, parts []exchange.Part) (float64, error) {
	r, a := o.r, &o.r.adder
	o.parts = o.parts[:0]
	for h, p := range parts {
		sum := reduce.Subtotal{Data: p.Data, Rank: reduce.Unknown, Count: int(p.Stamp.Age), Weight: p.Stamp.Weight}
		if n := len(r.hosts.Ranks[h]); p.Stamp.Age > uint64(n) || !(sum.Weight >= 0) || math.IsInf(sum.Weight, 0) {
			return 0, say.Errorf(rdma.ErrCorrupt, "%s: host %d of %d ranks sent a sum of %d, of weight %v", r.o.Called("sync"), h, n, p.Stamp.Age, sum.Weight)
		}
		if len(r.hosts.Ranks[h]) == 1 {
			sum.Rank = r.hosts.Ranks[h][0]
		}
		if p.Data == nil {
			sum.Data = r.o.Array()[off : off+len(dst)]
			if len(o.terms) > 1 {
				sum.Data = a.Room(h, len(dst))
				o.Part(sum.Data, off)
			}
		}
		o.parts = append(o.parts, sum)
	}
	a.Parts = append(a.Parts[:0], o.parts...)
	folded := a.FoldParts(o.op, r.o.Runs(), off, dst)
	clear(a.Parts)
	clear(o.parts)
	if !folded {
		return 0, nil
	}
	return 1, nil
}

// fillScratch puts what this rank has received where the others of its host find it.
func (o *sync) fillScratch() {
	r := o.r
	block := r.Memory()
	r.exchange.Each(func(off int, sum []byte, weight float64) {
		for _, p := range r.scratch[r.rank] {
			if p.lo <= off && off < p.hi && weight > 0 {
				reduce.Copy(block[p.at+off-p.lo:p.at+p.hi-p.lo], sum)
			}
		}
	})
}

// copyResult copies the result into the array.
func (o *sync) copyResult() {
	start := time.Now()
	o.copied, o.r.completed = true, o.clock
	o.r.result(o.r.o.Array())
	o.r.o.Folded(time.Since(start))
	o.r.o.Brought(o.r.adder.From, nil)
}

// result copies the result of the last sync that is complete to data; false: all ranks keep
// their values.
func (r *Route) result(data []byte) (folded bool) {
	r.exchange.Each(func(off int, sum []byte, weight float64) {
		if folded = weight > 0; folded && len(r.ranks) == 1 {
			reduce.CopyPart(data[off:], sum, len(data))
		}
	})
	if folded {
		for rank, pieces := range r.scratch {
			block := r.near.Bytes(rank)
			for _, p := range pieces {
				reduce.CopyPart(data[p.lo:p.hi], block[p.at:], len(data))
			}
		}
	}
	return folded
}

// publish puts the array into the box, at the clock of this sync. After an abort it is a
// scatter; otherwise it is for ranks that may have to follow another's abort.
func (o *sync) publish() error {
	if o.sent {
		return nil
	}
	stamp := rdma.Stamp{Clock: o.clock, Weight: o.weight}
	if !o.aborted {
		stamp.Tag = asInsurance
	}
	if err := o.r.o.Put(stamp); err != nil {
		return err
	}
	o.sent = true
	return nil
}
