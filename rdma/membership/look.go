package membership

import (
	"time"

	"malt/rdma/vote"
)

// look is what this rank sees now. Rules of package vote that go by time or by deaths go by
// this.
func (m *Members) look(now time.Time) {
	v := m.View()
	m.see.Living = m.home.Living()
	dead, doubted, lost, gone := m.see.Dead, vote.NewSet(m.c.Job.Hosts), vote.NewSet(m.c.Job.Hosts), vote.NewSet(m.c.Job.Hosts)
	for host := range v.Hosts.All() {
		if host == m.host {
			continue
		}
		switch m.judge(v, host) {
		case abstains:
			gone.Add(host)
			dead = dead.With(host)
		case left:
			dead = dead.With(host)
		case ended:
			dead = dead.With(host)
			lost.Add(host)
		case silent:
			doubted.Add(host)
			lost.Add(host)
		}
	}
	m.see.Dead, m.see.Left, m.see.Doubted, m.lost = dead, gone, doubted, lost
	// A host that is dead to this rank may go on being heard by another one for a while.
	m.doubts.Look(now, dead.Or(doubted))
	m.see.Lasted = m.doubts.Lasted(m.see.Suspects(v))
	l := m.lacking(now, v)
	if l != nil && l.Final {
		m.final.Store(true)
		m.home.LeaveOut() // before this rank can end for it
	}
	m.lack.Store(l)
}

// The states of a host, to this rank.
const (
	heard    = iota // one of its ranks is, or it has none
	silent          // none of those that have not ended is
	ended           // all of its ranks have, one of them without leaving
	left            // all of its ranks have left: it votes no more, and is not missed
	abstains        // so they have, and it has not voted on the next view
)

// judge is what a host of the view is to this rank.
func (m *Members) judge(v vote.View, host int) int {
	ranks, those, died, votes := 0, 0, false, false // ranks of the view, and those that are there no more
	for _, rank := range m.on[host] {
		if !v.Ranks.Has(rank) {
			continue
		}
		ranks++
		farewell, gone := m.net.Left(rank)
		switch {
		case gone:
			those++
			votes = votes || !v.Abstains(farewell)
		case m.net.Gone(rank):
			those++
			died = true
		case !m.net.Doubted(rank):
			return heard
		}
	}
	switch {
	case ranks == 0:
		return heard
	case those < ranks:
		return silent
	case died:
		return ended
	case votes:
		return left
	}
	return abstains
}

// reason tells whether this rank knows of anything that the next view would be for. accepted
// is what the host has, and has not learned to be decided: its proposer may be gone.
func (m *Members) reason(v vote.View, accepted vote.Ballot) bool {
	return !m.lost.And(v.Hosts).Empty() || accepted != 0 || !v.Ranks.And(m.c.Job.On(m.host)).Within(m.see.Living)
}
