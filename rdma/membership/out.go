package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/vote"
)

// Out is rdma.ErrExpelled, with hosts and votes, once this rank is left out; else nil.
func (m *Members) Out() error {
	if m.out.Load() == nil && !m.final.Load() && m.home.Out() {
		m.refuse("the others have gone on without this rank, or may have", "another rank of this host has found that out")
	}
	if err := m.out.Load(); err != nil {
		return *err
	}
	return nil
}

// Expelled says that peer has refused this rank, since it is not in the view that peer
// knows.
func (m *Members) Expelled(peer int) {
	m.leave("%s refuses this rank: it knows a view without it", m.names([]int{m.c.Job.Of[peer]}))
	m.Wake()
}

// leftOut says that v, the view after before or a later one, is without this rank.
func (m *Members) leftOut(before, v vote.View) {
	m.leave("generation %d is of %s: %d of %d hosts", v.Generation, m.names(slices.Collect(v.Hosts.All())), v.Hosts.Count(), before.Hosts.Count())
}

// leave is final, for all ranks of this host: as long as it lives, a rank is left out with its host alone.
func (m *Members) leave(where string, args ...any) {
	m.home.LeaveOut()
	m.refuse("the others have gone on without this rank", where, args...)
}

func (m *Members) refuse(what, where string, args ...any) {
	var err error = say.Errorf(rdma.ErrExpelled, "%s", what).At(where, args...).
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

// lack is what stands in the way of the next view.
type lack struct {
	Silent, Ended, Left []int // hosts of the view
	Mute                []int // hosts that can be reached, of which no rank answers: all are stopped, or hang
	Hosts               int   // in the view, that may have voted on the next one
	Votes, Needed       int   // that this rank can expect, and that a decision takes
	Final               bool  // there will never be as many (doomed): too many hosts have ended
}

// mute are hosts that can be reached, and do not answer though they are asked.
func (m *Members) mute(now time.Time, v vote.View) (hosts []int) {
	since := m.inquiry.since
	if since.IsZero() {
		return nil
	}
	for host := range v.Hosts.Less(m.see.Dead).Less(m.see.Doubted).All() {
		if host != m.host && min(now.Sub(since), now.Sub(m.heard[host])) >= muteAfter {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (m *Members) lacking(now time.Time, v vote.View) *lack {
	mute := m.mute(now, v)
	if len(mute) == 0 && !m.reason(v, 0) {
		m.doom = inquiry{}
		return nil
	}
	silent, dead, rest := m.see.Doubted, m.see.Dead.And(v.Hosts), v.Hosts.Less(m.see.Suspects(v))
	hosts := v.Hosts.Less(m.see.Left).Count()
	l := &lack{
		Silent: slices.Collect(silent.All()), Ended: slices.Collect(dead.And(m.lost).All()), Mute: mute, Left: slices.Collect(dead.Less(m.lost).All()),
		Hosts: hosts, Votes: rest.Count(), Needed: hosts/2 + 1,
	}
	if vote.Quorum(v.Hosts, rest, m.see) {
		l.Needed = min(l.Needed, l.Votes)
	}
	l.Final = m.doomed(now, v)
	return l
}

// doomed tells whether there will never be enough votes, and no host that may still run knows of a later view. It
// may have been decided just before the others ended, and what tells of it be on its way, so all are asked some time after.
func (m *Members) doomed(now time.Time, v vote.View) bool {
	rest := v.Hosts.Less(m.see.Dead)
	switch d := &m.doom; {
	case vote.Quorum(v.Hosts, rest, m.see):
		*d = inquiry{}
	case d.since.IsZero():
		d.since = now
	case now.Sub(d.since) >= askEach:
		m.pose(d, now, tick)
		return rest.Within(d.answered)
	}
	return false
}

// Stuck says why it is not decided who takes part: an rdma.ErrExpelled where votes are missing,
// else a context.DeadlineExceeded; nil where nothing stands in the way. It is final where hosts
// that may have decided on something have ended with it.
func (m *Members) Stuck() (why error, final bool) {
	switch l := m.lack.Load(); {
	case l == nil:
	case l.Final:
		return say.Errorf(rdma.ErrExpelled, "it can no longer be decided who goes on").At("%s", m.Missing()).
			Try("Start the job again. This rank does not go on alone: those hosts may have gone on without it before they ended."), true
	case l.Votes < l.Needed:
		return say.Errorf(rdma.ErrExpelled, "it cannot be decided who goes on").At("%s", m.Missing()).
			Try("This rank may be on the smaller side of a cut. Look after the network and those hosts."), false
	case len(l.Mute) > 0:
		return say.Errorf(context.DeadlineExceeded, "it is not decided who goes on").At("%s", m.Missing()).
			Try("The ranks of a host that did not answer are stopped, or hang: continue them (kill -CONT), or end them (kill -9)."), false
	}
	return nil, false
}

// Missing says the same in a line; "" where nothing has to be decided.
func (m *Members) Missing() string {
	l := m.lack.Load()
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
	if len(l.Mute) > 0 {
		what = append(what, m.names(l.Mute)+" did not answer")
	}
	if l.Votes < l.Needed {
		return fmt.Sprintf("%s; %d of %d hosts can vote, and a decision takes %d", strings.Join(what, ", "), l.Votes, l.Hosts, l.Needed)
	}
	return strings.Join(what, ", ")
}
