package shared

import (
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
	o.await(wordReduced)
	return len(o.Late()) == 0, nil
}

// await makes the ranks late whose word has yet to reach this call.
func (o *allReduce) await(word int) { o.SetLate(o.r.below(word, o.Number(), o.Late()[:0])) }

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
	if o.await(wordCalled); len(o.Late()) == 0 {
		if o.alike() {
			return committed
		}
		return aborted
	}
	// If the call goes by messages, those find the same again.
	if o.Elsewhere(o.Late()) || o.Lost() {
		return aborted
	}
	o.await(wordCalled)
	return pending
}

// alike tells whether all cards are of this call. A rank with a later call has made
// another instead, or has given this one up.
func (o *allReduce) alike() bool {
	for _, rank := range o.r.ranks() {
		if called, _ := o.r.shared.Get(rank, wordCalled); called != o.Number() {
			return false
		}
	}
	for _, rank := range o.r.ranks() {
		if card := o.r.cardOf(rank); string(card) != string(o.card) && !o.Alike(card) {
			return false
		}
	}
	return true
}

// hear reads the cards.
func (o *allReduce) hear() {
	same := true
	for _, rank := range o.r.ranks() {
		same = same && string(o.r.cardOf(rank)) == string(o.card)
	}
	o.Hear(o.cards, same)
}

// decideAndFold decides, unless that is done, and after a commit reads the cards and folds:
// other ranks wait for that.
func (o *allReduce) decideAndFold(want state) {
	if o.state == pending {
		if o.state = o.r.decide(wordMeeting, o.Number(), want); o.state == committed {
			o.hear()
			o.r.foldSpan(o.op, ofCall|o.Number(), nil)
			o.r.shared.Set(wordReduced, o.Number())
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
