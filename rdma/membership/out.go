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

// names names hosts with their ranks: "host 1 (ranks 2, 3) and host 4 (rank 9)".
func (m *Members) names(hosts []int) string {
	const most = 8
	var list []string
	for n, host := range hosts {
		if n == most {
			list = append(list, fmt.Sprintf("%d more", len(hosts)-n))
			break
		}
		list = append(list, fmt.Sprintf("host %d (%s)", host, say.Ranks(m.on[host])))
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

// Lack is what stands in the way of the next view.
type Lack struct {
	Silent, Ended []int // hosts of the view
	Hosts         int   // in the view
	Votes, Needed int   // that this rank can expect, and that a decision takes
}

func (m *Members) lacking(v vote.View) *Lack {
	silent, ended := m.see.Doubted, m.see.Dead.And(v.Hosts).And(m.lost)
	if silent.Empty() && ended.Empty() {
		return nil
	}
	rest := v.Hosts.Less(m.see.Suspects(v))
	l := &Lack{
		Silent: slices.Collect(silent.All()), Ended: slices.Collect(ended.All()),
		Hosts: v.Hosts.Count(), Votes: rest.Count(), Needed: v.Hosts.Count()/2 + 1,
	}
	if vote.Quorum(v.Hosts, rest, m.see.Dead) {
		l.Needed = min(l.Needed, l.Votes)
	}
	return l
}

// Lack is nil where no host is missed.
func (m *Members) Lack() *Lack { return m.lack.Load() }

// Missing is Lack for errors of waits; "" where no host is missed.
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
	return fmt.Sprintf("%s; %d of %d hosts can vote, and a decision takes %d", strings.Join(what, ", "), l.Votes, l.Hosts, l.Needed)
}
