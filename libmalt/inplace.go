package libmalt

import (
	"math"
	"time"

	"malt/libmalt/reduce"
	"malt/rdma"
)

// In lock-step on a graph in which each rank sends to all others every rank folds
// the same arrays to the same result. So each folds one part of it, and writes
// that into the arrays of all: nothing goes through boxes, and each array is read
// once and written once. The arrays of a vector made for that lie in memory that
// all ranks map.
//
// A sync at clock e, of rank me:
//
//	op, weight := …; step = 2e-1             I have arrived, and keep off my array
//	wait until decision >= 2e, or all have step >= 2e-1
//	all have arrived, with the same op:      CAS decision: open -> 2e, in place
//	else:                                    CAS decision: open -> 2e+1, through boxes
//	in place: fold my part of all arrays into each of them
//	          step = 2e; wait until all have step >= 2e
//	through boxes: scatter and gather as ever
//
// decision is one word of the job, open at e while it is below 2e. Whoever does
// not take part decides for boxes: a rank that scatters by itself, that gives up,
// or that sees that another is away, gone or dead. In place nobody is past clock e
// before all have folded, that is before all have read what was decided there. So
// where a later clock is found decided, e was through boxes.
//
// That holds for who gives up when all have arrived, too: it folds its part, and
// its sync counts as a scatter, after which only a gather can come. That one waits
// for the others' parts. Until then they may be written into the array.
//
// A call that ran into its timeout keeps its place: it has arrived, and others may
// write into its array, until it is made again or given up. If the rank enters a
// collective call meanwhile, where nobody waits for it, it decides, or folds, first.
//
// A rank that is stopped holds up the others, as in all lock-step. One that dies
// leaves arrays of which some blocks are averages and some are not; every wait
// fails with its death then. wordDone tells how far it was.
const (
	wordStep   = iota // 2e-1: arrived at clock e; 2e: has folded its part
	wordOp            // its reduce.Op, stored before its arrival
	wordWeight        // bits of its float64 weight, too
	wordDone          // e<<24 | blocks of its part that are in all arrays; see below
)

// What is swapped by all lies in a cache line apart from what one rank stores and others
// look at; and so does what belongs to collective calls, which have numbers of their
// own: see reducing.
const (
	wordDecision = (1 + iota) * lineWords // of rank 0
	wordCalled                            // the last call in which it has arrived
	wordReduced                           // the last call for which it has folded its part
	wordMeeting                           // as wordDecision
	inplaceWords
)

// lineWords is how many words lie in a cache line.
const lineWords = 8

// wordDone is for whoever repairs the arrays after a death: all arrays have the
// average of a block that it counts, and of the block after it some may have it in
// part. It holds until all have step >= 2e: after that an array may be written by
// its owner. Nothing is claimed where there is nothing to fold.

// cutBytes is where parts begin: at a cache line of their own, and between
// elements. blockBytes of each array are folded at a time.
const cutBytes = 64

// inPlace tells whether s can be averaged in place with op, which then gives the
// same result on all ranks.
func (s *Segment) inPlace(op reduce.Op) bool {
	return s.shared != nil && s.ch.everyone && sameOnAll(op)
}

// sameOnAll tells whether op gives all ranks the same where all send to all.
func sameOnAll(op reduce.Op) bool {
	switch op {
	case reduce.Mean, reduce.Sum, reduce.Min, reduce.Max:
		return true
	}
	return false
}

// part is which bytes of n rank folds.
func part(n, rank, size int) (lo, hi int) {
	cuts := (n + cutBytes - 1) / cutBytes
	at := func(r int) int { return min(n, cuts*r/size*cutBytes) }
	return at(rank), at(rank + 1)
}

// decision is what was decided at clock in that word of rank 0, and the word.
func (s *Segment) decision(word int, clock uint64) (verdict, uint64) {
	d, _ := s.shared.Get(0, word)
	switch {
	case d < 2*clock:
		return undecided, d
	case d == 2*clock:
		return directly, d
	}
	return throughBoxes, d
}

type verdict int

const (
	undecided verdict = iota
	directly
	throughBoxes
)

// decide sees to it that something is decided at clock: want, unless another
// rank, or this one before, has decided otherwise.
func (s *Segment) decide(word int, clock uint64, want verdict) verdict {
	for {
		v, d := s.decision(word, clock)
		if v != undecided {
			return v
		}
		decided := 2 * clock
		if want == throughBoxes {
			decided++
		}
		s.shared.Swap(0, word, d, decided)
	}
}

// averaging is a sync in place on its way.
type averaging struct {
	v       *Vector
	op      reduce.Op
	weight  float64
	clock   uint64
	verdict verdict // as far as this rank has seen
	late    []int
	watch   watch
}

// begin arrives. The caller has looked at the weight.
func (o *averaging) begin(v *Vector, op reduce.Op, weight float64) {
	*o = averaging{v: v, op: op, weight: weight, clock: v.Clock() + 1, late: o.late[:0], watch: o.watch.again()}
	v.tell(wordOp, uint64(op))
	v.tell(wordWeight, math.Float64bits(weight))
	v.shared.Set(wordStep, 2*o.clock-1)
}

// tell stores a word of this rank's, unless it is as it was.
func (s *Segment) tell(word int, value uint64) {
	if told, _ := s.shared.Get(s.w.rank, word); told != value {
		s.shared.Put(word, value)
	}
}

// step goes on. It has to wait until something is decided, and in place until all
// have folded.
func (o *averaging) step() (done bool) {
	s := &o.v.Segment
	for o.verdict == undecided {
		v, _ := s.decision(wordDecision, o.clock)
		if v == undecided {
			if v = o.look(); v == undecided {
				o.blocked()
				return false
			}
		}
		o.settle(v)
	}
	if o.verdict == directly {
		if o.late = s.below(wordStep, 2*o.clock, o.late[:0]); len(o.late) > 0 {
			o.blocked()
			return false
		}
		s.sentTo(o.clock, o.weight)
		s.averaged()
	}
	o.watch.end(s)
	return true
}

// settle sees to it that something is decided, want if nothing else is, and does
// what the others wait for then.
func (o *averaging) settle(want verdict) {
	if o.verdict == undecided {
		if o.verdict = o.v.decide(wordDecision, o.clock, want); o.verdict == directly {
			o.fold()
		}
	}
}

// look finds out what to decide: nothing while there is somebody to wait for.
func (o *averaging) look() verdict {
	s := &o.v.Segment
	if s.catchUp(); s.Clock()+1 != o.clock {
		return throughBoxes // a collective call of another thread has levelled the clocks
	}
	o.late = o.late[:0]
	for r, in := range s.ch.clocks {
		if r == s.w.rank {
			continue
		}
		if at, _ := s.shared.Get(r, wordStep); at >= 2*o.clock-1 {
			if op, _ := s.shared.Get(r, wordOp); reduce.Op(op) != o.op {
				return throughBoxes
			}
			continue
		}
		_, gone := in.Clock()
		if wait, dead := s.missing(r, gone); dead != nil || !wait {
			return throughBoxes // which knows what to do without it
		}
		o.late = append(o.late, r)
	}
	if len(o.late) > 0 {
		return undecided
	}
	return directly
}

// below appends to late the ranks whose word has yet to reach a value: those that
// have yet to fold their parts.
func (s *Segment) below(word int, value uint64, late []int) []int {
	for r := range s.w.size {
		if at, _ := s.shared.Get(r, word); at < value {
			late = append(late, r)
		}
	}
	return late
}

func (o *averaging) blocked() {
	s := &o.v.Segment
	s.w.note(inGather, s.id, s.Clock())
	o.watch.blocked(s, o.late)
}

// fold folds this rank's part. All have arrived, so that their arrays, ops and
// weights stay as they are until this rank says that it has.
func (o *averaging) fold() {
	start := time.Now()
	v := o.v
	v.weights = v.weights[:0]
	same, any := true, false
	for r := range v.w.size {
		bits, _ := v.shared.Get(r, wordWeight)
		v.weights = append(v.weights, math.Float64frombits(bits))
		same = same && v.weights[r] == 1
		any = any || v.weights[r] > 0
	}
	switch {
	case same:
		v.foldPart(o.op, o.clock, nil)
	case any || !o.op.Weighted(): // else all keep their values
		v.foldPart(o.op, o.clock, v.weights)
	}
	v.stats.FoldTime += time.Since(start)
	v.shared.Set(wordStep, 2*o.clock)
}

// foldPart folds this rank's part of all arrays into each of them. number is what
// wordDone tells besides.
func (v *Vector) foldPart(op reduce.Op, number uint64, weights []float64) {
	lo, hi := part(len(v.data), v.w.rank, v.w.size)
	for block := uint64(1); lo < hi; block++ {
		to := min(lo+blockBytes, hi)
		v.srcs = v.srcs[:0]
		for r := range v.w.size {
			v.srcs = append(v.srcs, v.shared.Bytes(r)[lo:to])
		}
		foldTogether(op, v.runs, lo, v.srcs, weights)
		v.shared.Put(wordDone, number<<24|min(block, 1<<24-1))
		lo = to
	}
	clear(v.srcs)
}

// moved is how many bytes pass from this rank to r in an average, and back: of this
// rank's array what r folds, of what this rank has folded all.
func (s *Segment) moved(r int) int {
	if s.across != nil {
		return s.across.moved[r]
	}
	lo, hi := part(len(s.data), s.w.rank, s.w.size)
	from, to := part(len(s.data), r, s.w.size)
	return hi - lo + to - from
}

// sentTo books what counts as a scatter, of which the gather is due.
func (s *Segment) sentTo(clock uint64, weight float64) {
	s.scattered(clock, weight)
	s.averagedAt = clock
	for r := range s.w.size {
		if r != s.w.rank {
			s.stats.Edges[r].SentMessages++
			s.stats.Edges[r].SentBytes += uint64(s.moved(r))
		}
	}
}

// scattered books that this rank has sent what it has at that clock.
func (s *Segment) scattered(clock uint64, weight float64) {
	s.clock.Store(max(s.Clock(), clock))
	s.changed()
	s.weight, s.void = weight, false
	s.unfolds++
	s.stats.Scatters++
	s.w.note(inCompute, s.id, s.Clock())
}

// averaged books what counts as a gather.
func (s *Segment) averaged() {
	s.averagedAt = 0
	s.unfolds--
	s.stats.Gathers++
	for r := range s.w.size {
		if r != s.w.rank {
			s.stats.Edges[r].fold(0, s.moved(r))
		}
	}
}

// leave is for who gives up: nobody waits for it, and nobody who has not begun to
// will write into its array.
func (o *averaging) leave() {
	o.settle(throughBoxes)
	if o.watch.end(&o.v.Segment); o.verdict == directly {
		o.v.sentTo(o.clock, o.weight)
	}
}

func (o *averaging) waiting() wait { return o.v.waiting(o.v.called("sync"), o.late) }

// share makes the memory of a vector whose mode allows averages in place, and of
// its card; nil where not all ranks are near.
func (s *Segment) share(bytes int) (rdma.Shared, error) {
	if s.kind != "vector" || s.w.size == 1 || len(s.w.t.Near()) < s.w.size || s.mode.representation != dense || !s.mode.everyone(s.w.size) {
		return nil, nil
	}
	return s.w.t.Share(s.boxName(), cardAt(bytes)+cardBytes, inplaceWords)
}
