package vote

// Store is what the ranks of one host share. Each method is atomic, or as good as that:
// several ranks call them at once, and any may be killed inside.
type Store interface {
	// View is the latest that the host knows.
	View() View
	// Learn has the host know a view, unless it knows a later one.
	Learn(v View)
	// Look is what the host has promised and accepted on the view of a generation, and the
	// state that Swap changes; false where the host knows that view.
	Look(generation uint64) (a Acceptor, at uint64, ok bool)
	// Swap replaces what Look has found, unless another rank was first.
	Swap(at uint64, a Acceptor) bool
}

// Voter is a rank that speaks for its host. One goroutine at a time uses it.
type Voter struct {
	Store
	Job  Job
	Host int
}

// Answer is what the host says to a message from another host, or from one of its own
// ranks; false: nothing. Answers are for the Proposal or the Question that they are about.
func (o Voter) Answer(m Message, see Sight, from int) (Message, bool) {
	for {
		known := o.View()
		on := m.Generation // what is voted on
		switch m.Kind {
		case Prepare, Accept:
		case Ask:
			on++
		case Decided:
			if m.Generation > known.Generation {
				o.Learn(m.View())
			}
			return decided(known), m.Generation < known.Generation
		default:
			return Message{}, false
		}
		if on != known.Generation+1 || !known.Hosts.Has(from) {
			return decided(known), true // if it is the later one, the asker answers with its own
		}
		before, at, ok := o.Look(on)
		if !ok {
			continue
		}
		after, answer := before, Message{}
		switch m.Kind {
		case Prepare:
			after, answer = before.prepare(m, see, from, o.Host)
		case Accept:
			after, answer = before.accept(m)
		case Ask:
			answer = before.asked(m)
		}
		if after.Promised == before.Promised && after.Accepted == before.Accepted || o.Swap(at, after) {
			return answer, true
		}
	}
}

// Farewell is the last word of a rank that leaves, and speaks for its host no more: the
// generation of the view that the host knows; 0 if the host has promised something on the
// next one, and may have taken part in a decision that it does not know.
func (o Voter) Farewell() uint64 {
	known := o.View()
	if a, _, ok := o.Look(known.Generation + 1); !ok || a.Promised != 0 {
		return 0
	}
	return known.Generation
}

// Propose takes a ballot of this host for this rank, above all that the host has promised
// and above the one that has beaten the proposal before, which may be nil; false where there
// is none left, or the host is not in the view. The rank that swaps a ballot in owns it, and
// so has promised it.
func (o Voter) Propose(see Sight, before *Proposal) (*Proposal, bool) {
	for {
		known := o.View()
		a, at, ok := o.Look(known.Generation + 1)
		if !ok {
			continue
		}
		above := a.Promised
		if before != nil && before.View.Generation == known.Generation {
			above = max(above, before.higher)
		}
		p := &Proposal{View: known, Host: o.Host, Ballot: above.After(o.Host, o.Job.Hosts), Suspects: see.Suspects(known)}
		if !known.Hosts.Has(o.Host) || p.Ballot > MaxBallot || known.Generation == MaxGeneration {
			return nil, false
		}
		p.promised, p.accepted = NewSet(o.Job.Hosts), NewSet(o.Job.Hosts)
		p.living = NewSet(len(o.Job.Of))
		a, promise := a.prepare(p.Prepare(see.Lasted), see, o.Host, o.Host)
		if o.Swap(at, a) {
			p.Heed(promise, o.Host)
			return p, true
		}
	}
}
