package libmalt

import (
	"errors"
	"math"
	"time"

	"malt/internal/say"
	"malt/libmalt/exchange"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// exchanging is a sync across hosts on its way.
//
// A sync at clock e, of rank me:
//
//	op, weight := …; step = 2e-1             I have arrived, and keep off my array
//	wait until all of my host have step >= 2e-1, with the same op
//	exchange e: send what my host has; add up my share; send the sum
//	what my host needs of what I have got into my scratch; step = 2e
//	lowest of a host of several: wait until all there have step >= 2e; done = e
//	wait until all there have step >= 2e, done >= e of each such host
//	copy the scratch of all there into my array
//
// A rank is *finished* when nobody waits for it any longer: its exchange has sent
// everything, and on a host of several ranks its step is 2e, and of the lowest, its
// done e. The array is not written before the end. So whoever will not finish puts its
// array into its box, as a scatter does: *at e through boxes*. Who sees that of any
// rank does so, too, and folds what is in all boxes; so does who has not finished and
// finds a rank that it waits for at clock e: that one has scattered to others only.
//
// That all take the same way follows from this: nobody gets to the end before all
// have finished, as each rank owns a piece of the sum; and who has finished never
// decides for boxes, but only follows. So either some rank has not finished when it
// decides, and nobody gets to the end, or nobody decides. Who has finished and gives up,
// or goes away, puts its array into its box as well, marked as no decision: for those who
// may have to follow another. Such a rank was not harmed: the sums come to it all the
// same, and its gather takes them.
//
// Who waits for a rank that is away, has left or scatters by itself has not finished: it
// waits for an arrival, or for parts, which come before all that a rank does afterwards.
// For sums, steps and marks of others who has finished waits until they come, or a
// decision: all had arrived. Each rank either finishes, decides, or is dead, which all
// waits tell; or it is slow, or keeps its place after a timeout, and is waited for as in
// all lock-step.
//
// Nothing here is swapped: every word has one writer. A rank that is stopped anywhere
// holds the others up, one that is killed fails them, and their arrays are as they were.
type exchanging struct {
	v      *Vector
	op     reduce.Op
	weight float64
	clock  uint64

	begun  bool // the exchange: all of this host have arrived
	step2  bool // this rank's step is 2e
	done   bool // this rank, as the lowest, has said so for its host
	copied bool // the array has the result
	boxes  bool // decided, or followed: through boxes
	sent   bool // the array is in the box
	noted  bool // that this rank waits

	terms []subtotal // of the ranks of this host
	parts []subtotal
	late  []int
	watch watch
}

// begin arrives. The caller has looked at the weight.
func (o *exchanging) begin(v *Vector, op reduce.Op, weight float64) {
	*o = exchanging{
		v: v, op: op, weight: weight, clock: v.Clock() + 1,
		terms: o.terms[:0], parts: o.parts[:0], late: o.late[:0], watch: o.watch.again(),
	}
	near := v.across.near
	near.Put(acrossOp, uint64(op))
	near.Put(acrossWeight, math.Float64bits(weight))
	near.Set(acrossStep, 2*o.clock-1)
}

// finished tells whether nobody waits for this rank.
func (o *exchanging) finished() bool {
	a := o.v.across
	switch {
	case !o.begun:
		return false
	case len(a.ranks) == 1:
		return a.exchange.Finished()
	case a.ranks[0] == o.v.w.rank:
		return o.done
	}
	return o.step2
}

// step goes on. done without boxes: the array has the result. Who decides for boxes,
// or finds that another has, goes on through them.
func (o *exchanging) step() (done bool, err error) {
	if o.copied || o.boxes {
		return o.copied, nil
	}
	s := &o.v.Segment
	err = o.advance()
	if err == nil && !o.copied && !o.boxes && !o.finished() {
		o.boxes = o.forsaken()
	}
	switch {
	case err != nil:
	case o.copied:
		if !o.sent {
			s.sentTo(o.clock, o.weight)
		}
		o.watch.end(s)
	case o.boxes:
		o.watch.end(s)
	default:
		if !o.noted { // a step is made again and again, and over a network a word costs something
			o.noted = true
			s.w.note(inGather, s.id, s.Clock())
		}
		o.watch.blocked(s, o.late)
	}
	return o.copied, err
}

// forsaken tells whether one of the ranks that the last step waited for will not
// come, as far as can be told.
func (o *exchanging) forsaken() bool {
	s := &o.v.Segment
	for _, r := range o.late {
		clock, gone := s.ch.clocks[r].Clock()
		if clock >= o.clock {
			return true // it has scattered by itself, though not to this rank
		}
		if wait, dead := s.missing(r, gone); dead != nil || !wait {
			return true
		}
	}
	return false
}

// advance goes as far as it can; late are those that it cannot go on without.
func (o *exchanging) advance() error {
	s, a := &o.v.Segment, o.v.across
	s.catchUp()
	if follow, err := o.decided(); follow || err != nil {
		o.boxes = follow
		return err
	}
	o.late = o.late[:0]
	if !o.begun {
		if o.late = o.below(2*o.clock - 1); len(o.late) > 0 {
			return nil
		}
		if !o.alike() {
			o.boxes = true
			return nil
		}
		o.begun = true
		sum := o.together()
		a.exchange.Begin(o.clock, rdma.Stamp{Kind: uint16(o.op), Age: uint64(sum.count), Weight: sum.weight})
	}
	if err := a.exchange.Step(o); err != nil {
		if errors.Is(err, exchange.ErrDiffers) {
			o.boxes = true
			return nil
		}
		return err
	}
	if !a.exchange.Complete() {
		o.late = a.exchange.Late(o.late)
		return nil
	}
	if len(a.ranks) > 1 {
		if !o.step2 {
			o.keep()
			o.step2 = true
			a.near.Set(acrossStep, 2*o.clock)
		}
		if o.late = o.below(2 * o.clock); len(o.late) > 0 {
			return nil
		}
		if !o.done && a.ranks[0] == s.w.rank {
			o.done = true
			a.words.Set(acrossDone, o.clock)
		}
	}
	for _, r := range a.lowest {
		if at, _ := a.words.Get(r, acrossDone); at < o.clock {
			o.late = append(o.late, r)
		}
	}
	if len(o.late) == 0 {
		o.take()
	}
	return nil
}

// decided looks whether a rank has decided for boxes.
func (o *exchanging) decided() (bool, error) {
	for i := range o.v.ch.sources {
		u, ok, err := o.v.ch.sources[i].inbox.At(o.clock)
		if err != nil || ok && u.Tag != asInsurance {
			return err == nil, err
		}
	}
	return false, nil
}

// below lists the ranks of this host that have yet to reach a step.
func (o *exchanging) below(step uint64) []int {
	o.late = o.late[:0]
	for _, r := range o.v.across.ranks {
		if at, _ := o.v.across.near.Get(r, acrossStep); at < step {
			o.late = append(o.late, r)
		}
	}
	return o.late
}

// alike tells whether all of this host fold alike.
func (o *exchanging) alike() bool {
	for _, r := range o.v.across.ranks {
		if op, _ := o.v.across.near.Get(r, acrossOp); reduce.Op(op) != o.op {
			return false
		}
	}
	return true
}

// together is what this host will send. All there have arrived, so that their
// weights stay as they are.
func (o *exchanging) together() subtotal {
	o.terms = o.terms[:0]
	for _, r := range o.v.across.ranks {
		bits, _ := o.v.across.near.Get(r, acrossWeight)
		o.terms = append(o.terms, subtotal{count: 1, weight: math.Float64frombits(bits)})
	}
	o.v.adder.terms = append(o.v.adder.terms[:0], o.terms...)
	return o.v.adder.together(o.op)
}

// Part implements exchange.Work.
func (o *exchanging) Part(dst []byte, off int) {
	v := o.v
	if len(o.terms) == 1 {
		reduce.Copy(dst, v.data[off:off+len(dst)])
		return
	}
	v.adder.terms = v.adder.terms[:0]
	for i, r := range v.across.ranks {
		t := o.terms[i]
		t.data = v.across.near.Bytes(r)[off : off+len(dst)]
		v.adder.terms = append(v.adder.terms, t)
	}
	v.adder.ofHost(o.op, v.runs, off, dst)
	clear(v.adder.terms)
}

// Merge implements exchange.Work. The weight is 0 where nothing weighs anything, so
// that all keep what they have.
func (o *exchanging) Merge(dst []byte, off int, parts []exchange.Part) (float64, error) {
	v, a := o.v, &o.v.adder
	o.parts = o.parts[:0]
	for h, p := range parts {
		sum := subtotal{p.Data, int(p.Stamp.Age), p.Stamp.Weight}
		if p.Stamp.Age > uint64(len(v.w.hosts.ranks[h])) || !(sum.weight >= 0) || math.IsInf(sum.weight, 0) {
			return 0, say.Errorf(rdma.ErrCorrupt, "%s: host %d of %d ranks sent a sum of %d, of weight %v", v.called("sync"), h, len(v.w.hosts.ranks[h]), p.Stamp.Age, sum.weight)
		}
		if p.Data == nil {
			sum.data = v.data[off : off+len(dst)]
			if len(o.terms) > 1 {
				sum.data = a.room(h, len(dst))
				o.Part(sum.data, off)
			}
		}
		o.parts = append(o.parts, sum)
	}
	a.parts = append(a.parts[:0], o.parts...)
	folded := a.ofAll(o.op, v.runs, off, dst)
	clear(a.parts)
	clear(o.parts)
	if !folded {
		return 0, nil
	}
	return 1, nil
}

// keep puts what this rank has got where the others of its host find it.
func (o *exchanging) keep() {
	block := o.v.across.near.Bytes(o.v.w.rank)
	o.v.across.exchange.Each(func(off int, sum []byte, weight float64) {
		for _, p := range o.v.across.scratch[o.v.w.rank] {
			if p.lo <= off && off < p.hi && weight > 0 {
				reduce.Copy(block[p.at+off-p.lo:p.at+p.hi-p.lo], sum)
			}
		}
	})
}

// take copies the result into the array.
func (o *exchanging) take() {
	a, data := o.v.across, o.v.data
	start := time.Now()
	o.copied = true
	folded := false
	a.exchange.Each(func(off int, sum []byte, weight float64) {
		if folded = weight > 0; folded && len(a.ranks) == 1 {
			reduce.CopyPart(data[off:], sum, len(data))
		}
	})
	if folded {
		for r, pieces := range a.scratch {
			block := a.near.Bytes(r)
			for _, p := range pieces {
				reduce.CopyPart(data[p.lo:p.hi], block[p.at:], len(data))
			}
		}
	}
	o.v.stats.FoldTime += time.Since(start)
}

// contribute puts the array into the box, at the clock of this sync. A decision makes
// it a scatter; else it is for those who may have to follow another's.
func (o *exchanging) contribute() error {
	if o.sent {
		return nil
	}
	s := &o.v.Segment
	b, err := s.ch.out.Begin()
	if err != nil {
		return err
	}
	stamp := rdma.Stamp{Clock: o.clock, Weight: o.weight}
	if !o.boxes {
		stamp.Tag = asInsurance
	}
	reduce.Copy(b, s.data)
	if err := s.ch.out.Commit(len(s.data), stamp, nil); err != nil {
		return err
	}
	o.sent = true
	s.head.Add(1)
	if !o.boxes {
		s.sentTo(o.clock, o.weight)
		return nil
	}
	s.scattered(o.clock, o.weight)
	for _, r := range s.ch.receivers {
		s.stats.Edges[r].SentMessages++
		s.stats.Edges[r].SentBytes += uint64(len(s.data))
	}
	return nil
}

// leave is for who gives up, or goes away: nobody waits for it.
func (o *exchanging) leave() error {
	if !o.boxes && !o.finished() {
		o.boxes = true
	}
	return o.contribute()
}

func (o *exchanging) waiting() wait { return o.v.waiting(o.v.called("sync"), o.late) }
