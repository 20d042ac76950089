package vote

import "time"

// Kind is what a message is, with the number of its frame.
type Kind uint8

const (
	Prepare     Kind = 20 + iota // may I propose under this ballot, without these suspects?
	Promise                      // the answer
	Accept                       // these shall be the members
	Accepted                     // the answer
	Decided                      // these are the members: it has been decided
	Ask                          // is there a later view than this, or may there be?
	Answer                       // the answer
	last        = iota
	First, Last = Prepare, Prepare + last - 1
)

// Verdict is what an answer says.
type Verdict uint8

const (
	Yes   Verdict = iota
	No            // Promise, Accepted: another ballot, which is higher, has been promised
	Heard         // Promise: some of the suspects are heard
	Holds         // Answer: a later view has been accepted, and perhaps decided
)

// Message is what two hosts tell each other. A message of another generation than the
// receiver's next is answered with the view that the receiver knows: Decided.
type Message struct {
	Kind       Kind
	Verdict    Verdict
	Generation uint64 // that is voted on; with Decided, Ask and Answer, that of the view
	Ballot     Ballot // of the proposer; with Promise and Accepted, as it was in the question
	Other      Ballot // Promise: with Yes, under which the host has accepted Members, or 0; with No, and of Accepted, the ballot promised
	Number     uint64 // Ask, Answer: of the question

	Lasted  time.Duration // Prepare: for how long the proposer has doubted all suspects, in whole milliseconds
	Hosts   Set           // Prepare: the suspects; Promise with Heard: those heard
	Living  Set           // Promise with Yes: the ranks of the host that live
	Members Members       // Promise with Other, Accept, Decided
}

// decided tells the view.
func decided(v View) Message {
	return Message{Kind: Decided, Generation: v.Generation, Members: v.Members}
}

// View is what a message of kind Decided tells.
func (m Message) View() View { return View{m.Generation, m.Members} }
