package libmalt

import (
	"context"

	"malt/libmalt/reduce"
)

// reducing is an allreduce of a vector in place: a collective call in which all ranks
// arrive by a word, and then each folds one part of all arrays, as in a sync.
//
// Call n, of rank me:
//
//	card = my header; called = n             I have arrived, and keep off my array
//	wait until meeting >= 2n, or all have called >= n, or one will not
//	all have called = n, with like cards:    CAS meeting: open -> 2n, in place
//	else:                                    CAS meeting: open -> 2n+1, by messages
//	in place: read the cards; fold my part of all arrays into each of them
//	          reduced = n; wait until all have reduced >= n
//	by messages: header and data through the queues, as any other allreduce
//
// meeting is one word of the job, open at n while it is below 2n. Whoever gives the
// call up, or finds that another one has gone, or sends messages, decides for messages:
// there all hear who gave it up, or who makes another call: it says so beforehand
// (World.note), and later its called is greater than n. One that finds that all are
// to fold does so first, and leaves then: the others do not notice. Its array may be
// written, and its card read, until they have folded, too, so its next call on the
// vector waits for that.
//
// The numbers are those of the collective calls and the words are others than those
// of a sync: each is decided by itself. Whoever goes on to another call, of either
// kind, has folded; so where all have arrived nobody writes for an earlier one.
type reducing struct {
	v       *Vector
	op      reduce.Op
	part    *collective
	sink    combine // where it goes by messages
	arrived bool
	verdict verdict

	own  []news // of the card
	card []byte
}

// ofCall says in a wordDone that the number is that of a collective call.
const ofCall = 1 << 39

// begin makes it the next call of the job.
func (o *reducing) begin(v *Vector, name string, op reduce.Op) {
	if o.part == nil {
		o.part = v.w.collective(name, nil, nothing{})
	}
	*o = reducing{
		v: v, op: op, part: o.part, sink: combine{op: op, runs: v.runs, dst: v.data}, own: o.own[:0], card: o.card[:0],
	}
	o.part.set(v.w, name, v.data, &o.sink)
	o.part.about = &v.Segment
}

func (o *reducing) step() (bool, error) {
	if o.verdict != throughBoxes {
		done, err := o.advance()
		switch {
		case err != nil:
			o.leave()
			o.part.fail(err)
			return false, err
		case done:
			o.part.end()
			return true, nil
		case o.verdict != throughBoxes:
			return false, nil
		}
	}
	return o.part.step()
}

func (o *reducing) advance() (bool, error) {
	c := o.part
	if !o.arrived {
		entered, err := c.enter()
		if !entered || err != nil {
			return false, err
		}
		o.arrive()
	}
	if o.verdict == undecided {
		if want := o.look(); want != undecided {
			o.settle(want)
		}
	}
	if o.verdict != directly {
		return false, nil
	}
	c.late = o.v.below(wordReduced, c.n, c.late[:0])
	return len(c.late) == 0, nil
}

// arrive shows the card. One that is as it was is left alone, in the caches of all.
func (o *reducing) arrive() {
	o.arrived = true
	const most = cardBytes - cardFixed
	var more bool
	if o.own, more = o.v.w.news(o.own[:0], o.part.room(most)); !more {
		o.card = o.part.appendHeader(o.card[:0], o.own)
	}
	if more || len(o.card) > most {
		o.settle(throughBoxes)
		return
	}
	o.v.showCard(o.card)
	o.v.shared.Set(wordCalled, o.part.n)
}

// look finds out what to decide: nothing while there is somebody to wait for.
func (o *reducing) look() verdict {
	c := o.part
	if v, _ := o.v.decision(wordMeeting, c.n); v != undecided {
		return v
	}
	if c.late = o.v.below(wordCalled, c.n, c.late[:0]); len(c.late) == 0 {
		if o.alike() {
			return directly
		}
		return throughBoxes
	}
	if o.elsewhere(c.late) {
		return throughBoxes
	}
	// What is found here is found again by messages, if it is by messages that it goes.
	fault, died := c.fault, c.died
	err := c.look()
	sent := len(c.late) < c.w.size-1
	c.fault, c.died = fault, died
	if err != nil || sent {
		return throughBoxes
	}
	c.late = o.v.below(wordCalled, c.n, c.late[:0])
	return undecided
}

// elsewhere tells whether one of these ranks makes another call in place of this one.
func (o *reducing) elsewhere(late []int) bool {
	for _, r := range late {
		if id, n, there := o.v.w.calling(r); there && n >= o.part.n && (n > o.part.n || id != o.v.id&idMask) {
			return true
		}
	}
	return false
}

// alike tells whether all cards are of this call. Who has called a later one has
// made another in its place, or has given it up.
func (o *reducing) alike() bool {
	for r := range o.v.w.size {
		if called, _ := o.v.shared.Get(r, wordCalled); called != o.part.n {
			return false
		}
	}
	for r := range o.v.w.size {
		if card := o.v.cardOf(r); string(card) != string(o.card) {
			if op, total, _, _, err := parseHeader(card); err != nil || op != o.part.op || total != uint64(len(o.v.data)) {
				return false
			}
		}
	}
	return true
}

// hear reads what the cards tell.
func (o *reducing) hear() {
	w, same := o.v.w, true
	for r := range o.v.w.size {
		same = same && string(o.v.cardOf(r)) == string(o.card)
	}
	for r := range w.size {
		if !same {
			if _, _, objects, _, err := parseHeader(o.v.cardOf(r)); err == nil {
				w.hearAll(r, objects)
			}
			continue
		}
		for _, n := range o.own {
			w.hear(r, n.of, n.standing)
		}
	}
}

// settle sees to it that something is decided, want if nothing else is, and does
// what the others wait for then.
func (o *reducing) settle(want verdict) {
	if o.verdict == undecided {
		if o.verdict = o.v.decide(wordMeeting, o.part.n, want); o.verdict == directly {
			o.hear()
			o.v.foldPart(o.op, ofCall|o.part.n, nil)
			o.v.shared.Set(wordReduced, o.part.n)
			return
		}
		o.v.w.untell(o.own) // nobody reads the card
	}
}

// allReduce makes the call, or goes on with it.
func (v *Vector) allReduce(ctx context.Context, name string, op reduce.Op) error {
	if v.shared == nil {
		return v.w.allReduce(ctx, call{name, &v.Segment}, v.data, v.runs, op)
	}
	_, err := v.w.run(ctx, call{name, &v.Segment}, func() (stepper, error) {
		v.reducing.begin(v, name, op)
		return &v.reducing, nil
	}, nil)
	return err
}

// leave is for who fails or gives up, if the others know of it: none of them waits
// for it from here on.
func (o *reducing) leave() {
	if o.part.begun {
		if o.settle(throughBoxes); o.verdict == directly {
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

func (o *reducing) call() string { return o.part.call() }

func (o *reducing) waiting() wait { return o.part.waiting() }

func (o *reducing) giveUp() {
	o.leave()
	o.part.giveUp()
}
