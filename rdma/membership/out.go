package membership

import (
	"fmt"
	"slices"
	"strings"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/vote"
)

// Out is rdma.ErrExpelled, with hosts and votes, once this rank is left out; else nil.
func (m *Members) Out() error {
	if err := m.out.Load(); err != nil {
		return *err
	}
	return nil
}

// Expelled says that peer has refused this rank, since it is not in the view that peer
// knows.
func (m *Members) Expelled(peer int) {
	m.leave("rank %d of host %d refuses this rank: it knows a view without it", peer, m.c.Job.Of[peer])
	m.Wake()
}

// leftOut says that v, the view after before or a later one, is without this rank.
func (m *Members) leftOut(before, v vote.View) {
	m.leave("generation %d is of %s: %d of %d hosts", v.Generation, m.names(slices.Collect(v.Hosts.All())), v.Hosts.Count(), before.Hosts.Count())
}

// leave is final.
func (m *Members) leave(where string, args ...any) {
	var err error = say.Errorf(rdma.ErrExpelled, "the others have gone on without this rank").At(where, args...).
		Try("End this process. Check the network between its host and the others.")
	m.out.CompareAndSwap(nil, &err)
}

// names names hosts with their ranks: "host 1 (ranks 2, 3) and host 4 (a witness)".
func (m *Members) names(hosts []int) string {
	const most = 8
	var list []string
	for n, host := range hosts {
		if n == most {
			list = append(list, fmt.Sprintf("%d more", len(hosts)-n))
			break
		}
		who := "a witness"
		if m.on[host][0] < m.c.Job.Ranks() {
			who = say.Ranks(m.on[host])
		}
		list = append(list, fmt.Sprintf("host %d (%s)", host, who))
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

// Lack is what stands in the way of the next view.
type Lack struct {
	Silent, Ended, Left []int // hosts of the view
	Hosts               int   // in the view, that may have voted on the next one
	Votes, Needed       int   // that this rank can expect, and that a decision takes
}

func (m *Members) lacking(v vote.View) *Lack {
	if !m.reason(v, 0) {
		return nil
	}
	silent, dead, rest := m.see.Doubted, m.see.Dead.And(v.Hosts), v.Hosts.Less(m.see.Suspects(v))
	hosts := v.Hosts.Less(m.see.Left).Count()
	l := &Lack{
		Silent: slices.Collect(silent.All()), Ended: slices.Collect(dead.And(m.lost).All()), Left: slices.Collect(dead.Less(m.lost).All()),
		Hosts: hosts, Votes: rest.Count(), Needed: hosts/2 + 1,
	}
	if vote.Quorum(v.Hosts, rest, m.see) {
		l.Needed = min(l.Needed, l.Votes)
	}
	return l
}

// Lack is nil where nothing has to be decided.
func (m *Members) Lack() *Lack { return m.lack.Load() }

// Missing is Lack for errors of waits; "" where nothing has to be decided.
func (m *Members) Missing() string {
	l := m.Lack()
	if l == nil {
		return ""
	}
	var what []string
	if len(l.Silent) > 0 {
		what = append(what, m.names(l.Silent)+" cannot be reached")
	}
	if len(l.Ended) > 0 {
		what = append(what, m.names(l.Ended)+" ended")
	}
	if len(l.Left) > 0 {
		what = append(what, m.names(l.Left)+" left")
	}
	return fmt.Sprintf("%s; %d of %d hosts can vote, and a decision takes %d", strings.Join(what, ", "), l.Votes, l.Hosts, l.Needed)
}
