package vote

// Acceptor is what a host has promised and accepted on the view of one generation. All
// ranks of the host share it (Store), and the host answers after it has changed there.
type Acceptor struct {
	Generation uint64
	Promised   Ballot  // nothing is accepted below it; 0: none
	Accepted   Ballot  // at most Promised; 0: none
	Members    Members // accepted under that ballot
}

// prepare is the answer to a proposer's first question. To be asked twice changes nothing:
// frames are repeated.
func (a Acceptor) prepare(m Message, see Sight, from, host int) (Acceptor, Message) {
	answer := Message{Kind: Promise, Generation: m.Generation, Ballot: m.Ballot}
	if m.Ballot < a.Promised {
		answer.Verdict, answer.Other = No, a.Promised
		return a, answer
	}
	if heard := see.objects(m, from, host); !heard.Empty() {
		answer.Verdict, answer.Hosts = Heard, heard
		return a, answer
	}
	a.Promised = m.Ballot
	answer.Living = see.Living
	answer.Other, answer.Members = a.Accepted, a.Members
	return a, answer
}

// accept is the answer to its second one. One rank owns a ballot, and proposes once under
// it: so what is accepted twice is the same.
func (a Acceptor) accept(m Message) (Acceptor, Message) {
	answer := Message{Kind: Accepted, Generation: m.Generation, Ballot: m.Ballot}
	if m.Ballot < a.Promised {
		answer.Verdict, answer.Other = No, a.Promised
		return a, answer
	}
	a.Promised, a.Accepted, a.Members = m.Ballot, m.Ballot, m.Members
	return a, answer
}

// asked is the answer to a question about the view before.
func (a Acceptor) asked(m Message) Message {
	answer := Message{Kind: Answer, Generation: m.Generation, Number: m.Number}
	if a.Accepted != 0 {
		answer.Verdict = Holds
	}
	return answer
}
