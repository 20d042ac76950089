package vote

// Question asks the hosts of the view that a host knows whether a later one may have been
// decided. The asker's own host is asked like the others.
type Question struct {
	View   View
	Number uint64 // not used before by this rank
	yes    Set
}

// Confirm begins a question.
func (o Voter) Confirm(number uint64) *Question {
	return &Question{View: o.View(), Number: number, yes: NewSet(o.Job.Hosts)}
}

// Ask is the message to all hosts of the view.
func (q *Question) Ask() Message {
	return Message{Kind: Ask, Generation: q.View.Generation, Number: q.Number}
}

// Heed takes in a host's answer.
func (q *Question) Heed(m Message, from int) {
	if m.Kind == Answer && m.Verdict == Yes && m.Number == q.Number && q.View.Hosts.Has(from) {
		q.yes = q.yes.With(from)
	}
}

// Confirmed: when the question was asked, no later view had been decided. For more than
// half of the hosts that vote had accepted none when they answered, and one of them takes part
// in any decision: a host that answered had not left before.
func (q *Question) Confirmed(see Sight) bool {
	hosts := q.View.Hosts.Less(see.Left)
	return 2*q.yes.And(hosts).Count() > hosts.Count()
}
