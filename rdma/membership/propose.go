package membership

import (
	"time"

	"malt/rdma/vote"
)

// among is the time between the proposals of two ranks of one host.
const among = 100 * time.Millisecond

// turn is a rank's wait for its proposal. It begins when there is a reason, and again when
// the suspects are others, or the host has promised a ballot to another rank.
type turn struct {
	waits    bool
	since    time.Time
	suspects vote.Set
	promised vote.Ballot // by the host
	tries    int         // for these suspects
	last     *vote.Proposal
	sent     time.Time // its frames
}

// propose begins a proposal, or repeats the frames of the one under way.
func (m *Members) propose(now time.Time) {
	v, t := m.View(), &m.turn
	a, _, ok := m.home.Look(v.Generation + 1)
	if !ok {
		return // another rank has just learned that view
	}
	suspects := m.see.Suspects(v)
	m.stirred = a.Promised != 0 || !m.lost.And(v.Hosts).Empty()
	if p := m.proposal; p != nil {
		switch beaten := p.Beaten() || a.Promised > p.Ballot; {
		case p.Stale(m.see):
			m.proposal = nil
		case !beaten:
			if now.Sub(t.sent) >= tick {
				m.send(now)
			}
			return
		}
	}
	if !m.reason(v, a.Accepted) || !vote.Quorum(v.Hosts, v.Hosts.Less(suspects), m.see) {
		t.waits, t.tries = false, 0
		return
	}
	switch {
	case !t.waits || !t.suspects.Equals(suspects):
		t.waits, t.since, t.suspects, t.tries = true, now, suspects, 0
	case t.promised != a.Promised:
		t.since = now
	}
	t.promised = a.Promised
	if now.Sub(t.since) < m.wait(v, a) {
		return
	}
	p, ok := m.voter.Propose(m.see, t.last)
	if !ok {
		return
	}
	m.proposal, t.last, t.promised = p, p, p.Ballot
	t.since = now
	t.tries++
	m.send(now)
	m.count()
}

// wait is for how long this rank leaves it to others to propose. What has happened on its
// own host alone only the ranks there know.
func (m *Members) wait(v vote.View, a vote.Acceptor) (wait time.Duration) {
	last := m.turn.last
	beaten := a.Promised != 0 && (last == nil || last.Ballot != a.Promised || last.Beaten())
	if beaten || !m.lost.And(v.Hosts).Empty() {
		wait = vote.Turn(v, m.turn.suspects, m.host, beaten)
	}
	for _, rank := range m.on[m.host] {
		if rank < m.c.Rank && v.Ranks.Has(rank) && m.see.Living.Has(rank) {
			wait += among
		}
	}
	return wait * time.Duration(1+m.turn.tries)
}

// send sends the question that the proposal is at. The own host answers at once.
func (m *Members) send(now time.Time) {
	p := m.proposal
	m.turn.sent = now
	q, accepting := p.Accept()
	if !accepting {
		m.tell(p.View.Hosts.Less(p.Suspects), p.Prepare(m.doubts.Lasted(p.Suspects)))
		return
	}
	m.tell(p.View.Hosts.Less(m.see.Dead), q)
	if answer, ok := m.voter.Answer(q, m.see, m.host); ok {
		p.Heed(answer, m.host)
	}
}

// count has the proposal go on as far as it can. The page knows a view before anybody is
// told of it.
func (m *Members) count() {
	p := m.proposal
	if p == nil {
		return
	}
	if p.Ready(m.see) {
		m.send(time.Now())
	}
	if v, ok := p.Decided(m.see); ok {
		m.home.Learn(v)
		m.tell(p.View.Hosts, vote.Message{Kind: vote.Decided, Generation: v.Generation, Members: v.Members})
		m.follow()
	}
}
