package libmalt

import (
	"context"

	"malt/libmalt/reduce"
)

// reducing is an allreduce of a vector in place: all ranks meet in a collective call
// without data, and then each folds one part of all arrays, as in a sync.
//
// Call n, of rank me:
//
//	send my header; wait for those of all       I have arrived, and keep off my array
//	CAS meeting: open -> 2n, in place
//	fold my part of all arrays into each of them
//	reduced = n; wait until all have reduced >= n
//
// meeting is one word of the job, open at n while it is below 2n. Who fails or gives
// the call up before it has seen something decided decides against: meeting is 2n+1
// then, nobody folds, and the others give the call up when they have heard who did
// so first. One that finds that all are to fold does so first, and leaves then: the
// others do not notice. Its array may be written until they have folded, too, so its
// next call on the vector waits for that.
//
// The numbers are those of the collective calls and the words are others than those
// of a sync: each is decided by itself. Whoever goes on to another call, of either
// kind, has folded; so where all have arrived nobody writes for an earlier one.
type reducing struct {
	v       *Vector
	op      reduce.Op
	part    *collective // the meeting
	met     bool
	verdict verdict
}

// abandoned is the verdict on a call that does not come about.
const abandoned = throughBoxes

// ofCall says in a wordDone that the number is that of a collective call.
const ofCall = 1 << 39

// reducesInPlace tells whether an allreduce of v is done in place: where messages
// that carry the data would cost more than a second round.
func (v *Vector) reducesInPlace() bool { return v.shared != nil && len(v.data) >= reduceBytes }

func (o *reducing) step() (bool, error) {
	done, err := o.advance()
	switch {
	case err != nil:
		o.leave()
		o.part.fail(err)
	case done:
		o.part.end()
	}
	return done, err
}

func (o *reducing) advance() (bool, error) {
	c := o.part
	if !o.met {
		done, err := c.advance()
		if !done || err != nil {
			return false, err
		}
		o.met = true
	}
	if o.verdict == undecided {
		want := directly
		if c.look() != nil {
			want = abandoned
		}
		o.settle(want)
	}
	if o.verdict == abandoned {
		return false, c.look() // until it is known why
	}
	c.late = o.v.below(wordReduced, c.n, c.late[:0])
	return len(c.late) == 0, nil
}

// settle sees to it that something is decided, want if nothing else is, and does
// what the others wait for then.
func (o *reducing) settle(want verdict) {
	if o.verdict == undecided {
		if o.verdict = o.v.decide(wordMeeting, o.part.n, want); o.verdict == directly {
			o.v.foldPart(o.op, ofCall|o.part.n, nil)
			o.v.shared.Set(wordReduced, o.part.n)
		}
	}
}

// allReduce makes the call, or goes on with it.
func (v *Vector) allReduce(ctx context.Context, name string, op reduce.Op) error {
	if !v.reducesInPlace() {
		return v.w.allReduce(ctx, call{name, &v.Segment}, v.data, v.runs, op)
	}
	_, err := v.w.run(ctx, call{name, &v.Segment}, func() (stepper, error) {
		c := v.w.collective(name, nil, nothing{})
		c.about = &v.Segment
		return &reducing{v: v, op: op, part: c}, nil
	}, nil)
	return err
}

// leave is for who fails or gives up, if the others know of it: none of them waits
// for it from here on.
func (o *reducing) leave() {
	if o.part.begun {
		if o.settle(abandoned); o.verdict == directly {
			o.v.reducedAt = o.part.n
		}
	}
}

// unreduced appends to late the ranks that may still write into the array, after
// this one has given an allreduce up.
func (s *Segment) unreduced(late []int) []int {
	if s.reducedAt > 0 {
		if late = s.below(wordReduced, s.reducedAt, late); len(late) == 0 {
			s.reducedAt = 0
		}
	}
	return late
}

func (o *reducing) suspend() {}

func (o *reducing) waiting() string { return o.part.waiting() }

func (o *reducing) giveUp() {
	o.leave()
	o.part.giveUp()
}
