package vote

import "time"

// Proposal is a rank's attempt to have the next view decided, under one ballot. It is over
// when the host knows that view.
type Proposal struct {
	View     View // the one before, whose hosts vote
	Host     int
	Ballot   Ballot
	Suspects Set // hosts without which the next one is to be

	accepting bool
	promised  Set     // hosts
	living    Set     // ranks of these
	best      Ballot  // the highest under which one of these had accepted something
	members   Members // that, then what is proposed
	accepted  Set     // hosts
	higher    Ballot  // that a host has promised to another
}

// Prepare is the question to all hosts but the suspects, whose doubt has lasted so long. It
// is repeated, with a longer doubt, until all have promised.
func (p *Proposal) Prepare(lasted time.Duration) Message {
	return Message{
		Kind: Prepare, Generation: p.View.Generation + 1, Ballot: p.Ballot,
		Lasted: lasted.Truncate(time.Millisecond), Hosts: p.Suspects,
	}
}

// Accept is the second one; false before there is one.
func (p *Proposal) Accept() (Message, bool) {
	return Message{Kind: Accept, Generation: p.View.Generation + 1, Ballot: p.Ballot, Members: p.members}, p.accepting
}

// Heed takes in a host's answer, also one that comes twice or late.
func (p *Proposal) Heed(m Message, from int) {
	if m.Generation != p.View.Generation+1 || m.Ballot != p.Ballot || !p.View.Hosts.Has(from) {
		return
	}
	switch {
	case m.Verdict == No:
		p.higher = max(p.higher, m.Other)
	case m.Verdict != Yes:
	case m.Kind == Accepted:
		p.accepted = p.accepted.With(from)
	case m.Kind == Promise && !p.accepting && !p.promised.Has(from):
		p.promised = p.promised.With(from)
		p.living = p.living.Or(m.Living)
		if m.Other > p.best {
			p.best, p.members = m.Other, m.Members
		}
	}
}

// Ready has the proposal go on to its second question, and tells whether it has just done
// so: all that are no suspects have promised, so that nobody is left out for being slow,
// and they are enough. It proposes what one of them may have accepted for a proposer that
// died: the one under the highest ballot. Else the members are the hosts that promised.
func (p *Proposal) Ready(see Sight) bool {
	if p.accepting || !p.View.Hosts.Less(p.Suspects).Within(p.promised) || !Quorum(p.View.Hosts, p.promised, see) {
		return false
	}
	p.accepting = true
	if p.best == 0 {
		p.members = Members{Hosts: p.promised, Ranks: p.living.And(p.View.Ranks)}
	}
	return true
}

// Decided is the view once enough have accepted it. The host has to learn it before another
// one is told.
func (p *Proposal) Decided(see Sight) (View, bool) {
	return View{p.View.Generation + 1, p.members}, p.accepting && Quorum(p.View.Hosts, p.accepted, see)
}

// Beaten tells whether another host has a higher ballot: this one may fail, and the host
// takes a higher one, after its Turn. Otherwise, if that host dies, nobody goes on.
func (p *Proposal) Beaten() bool { return p.higher > p.Ballot }

// Stale tells whether the proposal was for other suspects than there are now, and nothing
// has been proposed yet: it begins again, or is given up if there is no reason any more.
func (p *Proposal) Stale(see Sight) bool {
	return !p.accepting && !p.Suspects.Equals(see.Suspects(p.View))
}
