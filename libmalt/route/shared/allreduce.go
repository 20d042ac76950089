package shared

import (
	"slices"

	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// allReduce is a collective call in which each rank folds one span of all arrays.
type allReduce struct {
	core.Call // and its way by messages

	r       *Route
	op      reduce.Op
	arrived bool
	state   state
	card    []byte
	cards   func(rank int) []byte // Route.cardOf
}

// AllReduce is never nil.
func (r *Route) AllReduce(c core.Call, op reduce.Op) core.Stepper {
	o := &r.allReduce
	*o = allReduce{Call: c, r: r, op: op, card: o.card[:0], cards: o.cards}
	if o.cards == nil {
		o.cards = r.cardOf
	}
	return o
}

func (o *allReduce) Step() (bool, error) {
	if o.state != aborted {
		done, err := o.advance()
		switch {
		case err != nil:
			o.leave()
			o.Fail(err)
			return false, err
		case done:
			o.End()
			return true, nil
		case o.state != aborted:
			return false, nil
		}
	}
	return o.Call.Step()
}

func (o *allReduce) advance() (bool, error) {
	if !o.arrived {
		entered, err := o.Enter()
		if !entered || err != nil {
			return false, err
		}
		o.arrive()
	}
	if o.state == pending {
		if want := o.choose(); want != pending {
			o.decideAndFold(want)
		}
	}
	if o.state != committed {
		return false, nil
	}
	o.SetLate(o.r.unfolded(&o.r.calls, o.Late()[:0]))
	return len(o.Late()) == 0, nil
}

func (o *allReduce) CameLast() int { return o.r.last(wordMeeting, o.Number()) }

// await makes the ranks late that have yet to arrive, and may.
func (o *allReduce) await() {
	late := o.r.below(o.r.all, wordCalled, o.Number(), o.Late()[:0])
	o.SetLate(slices.DeleteFunc(late, o.r.o.Lost))
}

// arrive shows the card. An unchanged card stays in the caches of all ranks.
func (o *allReduce) arrive() {
	o.arrived = true
	card := o.Card(o.card[:0], cardBytes-cardFixed)
	if card == nil {
		o.decideAndFold(aborted)
		return
	}
	o.card = card
	o.r.showCard(o.card)
	o.r.shared.Set(wordCalled, o.Number())
}

// choose is the decision that this rank wants: pending while it has to wait for
// another.
func (o *allReduce) choose() state {
	if s, _ := o.r.decision(wordMeeting, o.Number()); s != pending {
		return s
	}
	if o.await(); len(o.Late()) == 0 {
		if o.alike() {
			return committed
		}
		return aborted
	}
	// If the call goes by messages, those find the same again.
	if o.Elsewhere(o.Late()) || o.Lost() {
		return aborted
	}
	o.await()
	return pending
}

// alike tells whether all cards are of this call. A rank with a later call has made
// another instead, or has given this one up.
func (o *allReduce) alike() bool {
	p := &o.r.calls
	p.begin(o.r, o.op, ofCall|o.Number(), 0) // as it will be
	for _, rank := range p.ranks {
		if o.r.shared.Get(rank, wordCalled) != o.Number() {
			return false
		}
	}
	for _, rank := range p.ranks {
		if card := o.r.cardOf(rank); string(card) != string(o.card) && !o.Alike(card) {
			return false
		}
	}
	return true
}

// hear reads the cards, and the view of the rank that has decided.
func (o *allReduce) hear() {
	ranks, same, view := o.r.calls.ranks, true, o.View()
	if o.r.o.Survives() {
		view = o.r.decidersView()
	}
	for _, rank := range ranks {
		same = same && string(o.r.cardOf(rank)) == string(o.card)
	}
	o.Hear(ranks, view, o.cards, same)
}

// decideAndFold decides, unless that is done, and after a commit reads the cards and folds:
// other ranks wait for that.
func (o *allReduce) decideAndFold(want state) {
	if o.state == pending {
		if want == committed && o.r.o.Survives() {
			o.r.showView()
		}
		state, d, mine := o.r.decide(wordMeeting, o.Number(), want)
		if o.state = state; state == committed {
			o.r.calls.begin(o.r, o.op, ofCall|o.Number(), d)
			o.hear()
			o.r.fold(&o.r.calls, o.r.rank)
			o.r.finish(&o.r.calls, mine)
			return
		}
		o.Unread()
	}
}

// leave is called when this rank fails or gives up. If the others know that it is in
// the call, they no longer wait for it.
func (o *allReduce) leave() {
	if o.Entered() {
		if o.decideAndFold(aborted); o.state == committed {
			o.r.leftAt = o.Number()
		}
	}
}

func (o *allReduce) GiveUp() {
	o.leave()
	o.Call.GiveUp()
}
