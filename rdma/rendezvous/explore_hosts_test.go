//go:build explore

package rendezvous

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"malt/internal/explore"
	"malt/rdma/internal/mem"
	"malt/rdma/vote"
)

// election is a case: hosts with so many ranks each, every host with a page; and for each
// rank, how often it proposes, and without which host. The network is a word for each
// message: a rank takes in what is there, in any order, or never.
type election struct {
	ranks   []int
	tries   []int // by rank of the job
	without []int // -1: no host is to go, but a rank
}

// speaker is a rank, with what it knows beside its page.
type speaker struct {
	c        *election
	job      vote.Job
	host     int
	rank     int
	page     page
	o        vote.Voter
	see      vote.Sight
	proposal *vote.Proposal
	tried    int
	heard    []uint64 // what it has taken in, by word of the network
	dead     vote.Set
	threads  []*explore.Thread
	net      network
}

// network has, for each attempt, the words prepare, accept and decided, and the answers of
// each host to the first two.
type network struct {
	b              []byte
	hosts, attempt int
}

const (
	toPrepare = iota
	toAccept
	toLearn
	answersFrom
)

func (n network) per() int { return 8 * (answersFrom + 2*n.hosts) }

func (n network) word(attempt, what int) *mem.Word {
	return mem.WordAt(n.b, attempt*n.per()+8*what)
}

// read is the same without a turn of its own: what a rank finds when its turn begins.
func (n network) read(attempt, what int) uint64 {
	return binary.NativeEndian.Uint64(n.b[attempt*n.per()+8*what:])
}

// pack makes a number of a message, whose kind is told by its place.
func pack(m vote.Message) uint64 {
	bits := func(s vote.Set) uint64 {
		if s == nil {
			return 0
		}
		return s[0]
	}
	return 1 | uint64(m.Verdict)<<1 | m.Generation<<4 | uint64(m.Ballot)<<8 | uint64(m.Other)<<16 |
		bits(m.Hosts)<<24 | bits(m.Living)<<32 | bits(m.Members.Hosts)<<40 | bits(m.Members.Ranks)<<48
}

func unpack(kind vote.Kind, v uint64) vote.Message {
	set := func(at int) vote.Set { return vote.Set{v >> at & 255} }
	return vote.Message{
		Kind: kind, Verdict: vote.Verdict(v >> 1 & 7), Generation: v >> 4 & 15,
		Ballot: vote.Ballot(v >> 8 & 255), Other: vote.Ballot(v >> 16 & 255),
		Hosts: set(24), Living: set(32), Members: vote.Members{Hosts: set(40), Ranks: set(48)},
	}
}

func (c *election) setup(x *explore.Exec) {
	job := vote.Job{Hosts: len(c.ranks)}
	var pages []page
	for h, n := range c.ranks {
		p := page(x.Memory(pageBytes(n)))
		p.format(n, 0)
		pages = append(pages, p)
		for range n {
			job.Of = append(job.Of, h)
		}
	}
	attempts := 0
	for _, n := range c.tries {
		attempts += n
	}
	net := network{hosts: job.Hosts}
	net.b = x.Memory(attempts * net.per())
	x.Names(func(word func([]byte, string)) {
		for h, p := range pages {
			nameVotes(func(b []byte, name string) { word(b, fmt.Sprintf("%s of host %d", name, h)) }, p, c.ranks[h])
		}
		for a := range attempts {
			for what := range net.per() / 8 {
				name := fmt.Sprintf("attempt %d: ", a) + []string{"prepare", "accept", "decided"}[min(what, 2)]
				if what >= answersFrom {
					name = fmt.Sprintf("attempt %d: %s of host %d", a, []string{"promise", "accepted"}[(what-answersFrom)/job.Hosts], (what-answersFrom)%job.Hosts)
				}
				word(net.b[a*net.per()+8*what:], name)
			}
		}
	})
	x.Always(func(report func(string, ...any)) { judgeViews(pages, net, attempts, job, report) })
	threads := make([]*explore.Thread, len(job.Of))
	first := 0
	for rank, h := range job.Of {
		s := &speaker{
			c: c, job: job, host: h, rank: rank, page: pages[h], threads: threads,
			o:     vote.Voter{Store: &votes{page: pages[h], rank: rank - slices.Index(job.Of, h), job: job}, Job: job, Host: h},
			see:   vote.Sight{Living: job.On(h), Dead: vote.NewSet(job.Hosts), Doubted: vote.NewSet(job.Hosts)},
			net:   net,
			heard: make([]uint64, attempts*net.per()/8),
		}
		s.net.attempt = first
		first += c.tries[rank]
		threads[rank] = x.Go(fmt.Sprint("rank ", rank), s.run).Endless()
	}
}

// judgeViews holds the views that the pages name, and those that were told, against each
// other; those of hosts that have died since, too. A rank goes on once its page names a view.
func judgeViews(pages []page, net network, attempts int, job vote.Job, report func(string, ...any)) {
	var all []vote.View
	for _, p := range pages {
		all = append(all, (&votes{page: p, job: job}).View())
	}
	for a := range attempts {
		if v := net.read(a, toLearn); v != 0 {
			all = append(all, unpack(vote.Decided, v).View())
		}
	}
	for i, v := range all {
		ranks := vote.NewSet(len(job.Of))
		for host := range v.Hosts.All() {
			ranks = ranks.Or(job.On(host))
		}
		if v.Hosts.Empty() || !v.Ranks.Equals(ranks) {
			report("a view of hosts %b has ranks %b", v.Hosts[0], v.Ranks[0])
		}
		for _, o := range all[:i] {
			if o.Generation == v.Generation && !o.Members.Equals(v.Members) {
				report("two views of generation %d: hosts %b and %b", v.Generation, o.Hosts[0], v.Hosts[0])
			}
		}
	}
}

// run takes in messages, proposes and counts, in any order.
func (s *speaker) run(t *explore.Thread) {
	for {
		t.At("idle", s.heard, s.proposal, s.tried, s.dead)
		t.Await(func() bool { return len(s.todo(true)) > 0 })
		s.mourn()
		list := s.todo(false)
		t.Observe(s.dead, list)
		next := list[0]
		if len(list) > 1 {
			next = list[t.Choose(len(list))]
		}
		t.Observe(next.value)
		s.do(next)
	}
}

// task is what a rank can do: take in a word of the network, or propose (attempt -1).
type task struct {
	attempt, what int
	value         uint64
}

// todo are the tasks that there are. In looking, words are read as such: that makes them
// shared.
func (s *speaker) todo(looking bool) (list []task) {
	view := binary.NativeEndian.Uint64(s.page[offView:])
	if looking {
		view = s.page.view().Load()
	}
	if view != firstView {
		return nil
	}
	if s.tried < s.c.tries[s.rank] {
		list = append(list, task{attempt: -1})
	}
	if looking && len(list) > 0 {
		return list
	}
	attempts := len(s.heard) * 8 / s.net.per()
	for a := range attempts {
		mine := s.proposal != nil && a == s.net.attempt+s.tried-1
		for what := range s.net.per() / 8 {
			v := s.net.read(a, what)
			if looking {
				v = s.net.word(a, what).Load()
			}
			if v != 0 && v != s.heard[a*s.net.per()/8+what] && s.concerns(a, what, mine) {
				list = append(list, task{a, what, v})
			}
		}
	}
	if s.proposal != nil && !s.gone().Equals(s.see.Dead) {
		list = append(list, task{attempt: -2})
	}
	return list
}

// concerns tells whether a word is for this rank: what other hosts send, and the answers to
// its own attempt under way.
func (s *speaker) concerns(attempt, what int, mine bool) bool {
	if what >= answersFrom {
		return mine
	}
	owner := 0
	for first := 0; first+s.c.tries[owner] <= attempt; owner++ {
		first += s.c.tries[owner]
	}
	return s.job.Of[owner] != s.host
}

// gone are the hosts of which every rank was killed.
func (s *speaker) gone() vote.Set {
	dead := vote.NewSet(s.job.Hosts)
	for h := range s.job.Hosts {
		all := true
		for rank, at := range s.job.Of {
			all = all && (at != h || s.threads[rank].Dead())
		}
		if all {
			dead.Add(h)
		}
	}
	return dead
}

func (s *speaker) sight() vote.Sight { return vote.Sight{Dead: s.dead, Left: vote.NewSet(s.job.Hosts)} }

func (s *speaker) mourn() { s.dead = s.gone() }

func (s *speaker) do(n task) {
	s.see.Dead = s.dead
	switch {
	case n.attempt == -1:
		see := s.see
		if host := s.c.without[s.rank]; host >= 0 {
			see.Doubted = vote.SetOf(s.job.Hosts, host).Less(s.dead)
		}
		s.tried++
		s.proposal, _ = s.o.Propose(see, s.proposal)
		s.send(toPrepare, s.proposal.Prepare(0))
		s.count()
	case n.attempt == -2:
		s.count()
	case n.what >= answersFrom:
		s.heard[n.attempt*s.net.per()/8+n.what] = n.value
		kind := vote.Promise
		if n.what-answersFrom >= s.job.Hosts {
			kind = vote.Accepted
		}
		s.proposal.Heed(unpack(kind, n.value), (n.what-answersFrom)%s.job.Hosts)
		s.count()
	default:
		s.heard[n.attempt*s.net.per()/8+n.what] = n.value
		m := unpack([]vote.Kind{vote.Prepare, vote.Accept, vote.Decided}[n.what], n.value)
		from := m.Ballot.Host(s.job.Hosts)
		if answer, ok := s.o.Answer(m, s.see, from); ok && answer.Kind != vote.Decided && answer.Verdict == vote.Yes {
			s.net.word(n.attempt, answersFrom+n.what*s.job.Hosts+s.host).Store(pack(answer))
		}
	}
}

// count has the proposal go on as far as it can. The own host accepts like any other.
func (s *speaker) count() {
	if s.proposal.Ready(s.sight()) {
		m, _ := s.proposal.Accept()
		s.send(toAccept, m)
		if answer, ok := s.o.Answer(m, s.see, s.host); ok {
			s.proposal.Heed(answer, s.host)
		}
	}
	if v, ok := s.proposal.Decided(s.sight()); ok {
		s.o.Learn(v)
		s.send(toLearn, vote.Message{Kind: vote.Decided, Generation: v.Generation, Ballot: s.proposal.Ballot, Members: v.Members})
	}
}

func (s *speaker) send(what int, m vote.Message) {
	s.net.word(s.net.attempt+s.tried-1, what).Store(pack(m))
}

// The hosts of a job, each with its page, come to one view, whichever rank is killed where.
func TestExploreVotesInPages(t *testing.T) {
	for _, c := range []struct {
		name               string
		large              bool
		kills, preemptions int
		election
	}{
		{"two hosts", false, 1, 0, election{[]int{1, 1}, []int{1, 1}, []int{-1, -1}}},
		{"two ranks speak", false, 1, 1, election{[]int{2, 1}, []int{1, 0, 1}, []int{-1, 0, -1}}},
		{"two ranks propose", false, 1, 0, election{[]int{2, 1}, []int{1, 1, 0}, []int{1, 1, 0}}},
		{"three ballots", false, 0, 1, election{[]int{2, 1}, []int{1, 1, 1}, []int{-1, 1, -1}}},
		{"three hosts", false, 0, 1, election{[]int{2, 1, 1}, []int{1, 1, 0, 0}, []int{1, 2, 0, 0}}},
		{"two ranks speak, all orders", true, 1, 0, election{[]int{2, 1}, []int{1, 0, 1}, []int{-1, 0, -1}}},
		{"three ballots, all orders", true, 1, 0, election{[]int{2, 1}, []int{1, 1, 1}, []int{-1, 1, -1}}},
		{"two by two", true, 1, 2, election{[]int{2, 2}, []int{1, 0, 1, 0}, []int{-1, 0, -1, 0}}},
		{"three hosts, a death", true, 1, 2, election{[]int{2, 1, 1}, []int{1, 1, 0, 0}, []int{1, 2, 0, 0}}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.election.setup))
		})
	}
}
