//go:build explore

package rendezvous

import (
	"fmt"
	"testing"

	"malt/internal/explore"
	"malt/rdma/internal/mem"
	"malt/rdma/vote"
)

// What a host has promised and accepted, in a page that its ranks share: they answer like
// one acceptor, whoever of them is killed, and where. Package vote explores the votes of
// hosts that are each one value.

// speech is a case: what each rank of a host is asked, in order. Ballots belong to other
// hosts. With "next", the rank learns the view, and accepts that ballot on the next one;
// with "take", it takes a ballot.
type speech struct {
	asked [][]string // of ranks: "prepare 1", "accept 2", of ballots that count from 1
	looks int        // how often one more rank looks
}

var (
	two  = vote.Job{Hosts: 4, Of: []int{0, 1, 2, 3}}
	base = vote.Ballot(4) // of round 1, host 0
)

// proposed are the members under a ballot: each word of them tells the ballot.
func proposed(b vote.Ballot) vote.Members {
	set := vote.Set{uint64(b - base)}
	return vote.Members{Hosts: set, Ranks: set}
}

func message(kind vote.Kind, b vote.Ballot) vote.Message {
	m := vote.Message{Kind: kind, Generation: 2, Ballot: b}
	if kind == vote.Accept {
		m.Members = proposed(b)
	} else {
		m.Hosts = vote.NewSet(two.Hosts)
	}
	return m
}

func (c speech) setup(x *explore.Exec) {
	ranks := len(c.asked) + 1
	p := page(x.Memory(pageBytes(ranks)))
	p.format(ranks, 0)
	// Answers as they were given: by ballot, a promise with what had been accepted, and
	// whether it was accepted.
	answers := x.Memory(64 * 2)
	promises := func(b vote.Ballot) *mem.Word { return mem.WordAt(answers, 8*int(b-base)) }
	accepted := func(b vote.Ballot) *mem.Word { return mem.WordAt(answers, 64+8*int(b-base)) }
	x.Names(func(word func([]byte, string)) {
		nameVotes(word, p, ranks)
		word(answers[8:], "promise 1")
		word(answers[16:], "promise 2")
		word(answers[24:], "promise 3")
		word(answers[72:], "accepted 1")
		word(answers[80:], "accepted 2")
		word(answers[88:], "accepted 3")
	})
	x.Always(func(report func(string, ...any)) {
		for b := base + 1; b < base+4; b++ {
			o := promises(b).Load()
			if o == 0 {
				continue
			}
			for lower := vote.Ballot(o); lower < b; lower++ {
				if uint64(lower) != o && lower > base && accepted(lower).Load() != 0 {
					report("ballot %d was promised, with %d accepted, and then %d was accepted", b-base, o-uint64(base), lower-base)
				}
			}
		}
	})
	see := vote.Sight{Living: vote.NewSet(4), Dead: vote.NewSet(4), Doubted: vote.NewSet(4)}
	voter := func(rank int) vote.Voter {
		return vote.Voter{Store: &votes{page: p, rank: rank, job: two}, Job: two, Host: 0}
	}
	for rank, list := range c.asked {
		o := voter(rank)
		x.Go(fmt.Sprint("rank ", rank), func(t *explore.Thread) {
			for n, ask := range list {
				t.At("asked", n)
				var b vote.Ballot
				var kind string
				if _, err := fmt.Sscanf(ask, "%s %d", &kind, &b); err != nil {
					t.Fail("%q: %v", ask, err)
				}
				b += base
				switch kind {
				case "next":
					onNext(t, o, b, see)
					continue
				case "take":
					if p, ok := o.Propose(see, nil); !ok || accepted(base+vote.Ballot(p.Ballot/4)).Add(1) > 1 {
						t.Fail("ballot %d is owned twice", p.Ballot)
					}
					continue
				}
				if kind == "accept" {
					if m, ok := o.Answer(message(vote.Accept, b), see, b.Host(two.Hosts)); ok && m.Verdict == vote.Yes {
						accepted(b).Store(1)
					}
					continue
				}
				m, ok := o.Answer(message(vote.Prepare, b), see, b.Host(two.Hosts))
				if !ok || m.Verdict != vote.Yes {
					continue
				}
				if m.Other != 0 && !m.Members.Equals(proposed(m.Other)) {
					t.Fail("accepted under ballot %d is %v", m.Other-base, m.Members)
				}
				if m.Other < b {
					promises(b).Store(uint64(max(m.Other, base)))
				}
			}
		})
	}
	o := voter(len(c.asked))
	x.Go("reader", func(t *explore.Thread) {
		var last vote.Acceptor
		for n := range c.looks {
			t.At("look", n, last)
			a, _, ok := o.Look(2)
			if !ok {
				break // the host votes on the next view
			}
			if a.Promised < last.Promised || a.Accepted < last.Accepted || a.Accepted > a.Promised {
				t.Fail("%+v after %+v", a, last)
			}
			if a.Accepted != 0 && !a.Members.Equals(proposed(a.Accepted)) {
				t.Fail("accepted under ballot %d is %v", a.Accepted-base, a.Members)
			}
			last = a
		}
	})
}

// onNext has the only rank that knows of it vote on generation 3, where nothing has been
// promised yet.
func onNext(t *explore.Thread, o vote.Voter, b vote.Ballot, see vote.Sight) {
	o.Learn(vote.View{Generation: 2, Members: two.Everyone()})
	m := message(vote.Accept, b)
	m.Generation = 3
	if answer, ok := o.Answer(m, see, b.Host(two.Hosts)); !ok || answer.Verdict != vote.Yes {
		t.Fail("ballot %d on the next view is refused: %+v", b-base, answer)
	}
	if a, _, ok := o.Look(3); !ok || a.Accepted != b {
		t.Fail("ballot %d on the next view is lost: %+v", b-base, a)
	}
}

// nameVotes names the words of a page for traces.
func nameVotes(word func([]byte, string), p page, ranks int) {
	word(p[offView:], "view")
	word(p[offVote:], "vote")
	for rank := range ranks {
		for which := range 2 {
			set := offMembers + rank*perMember + which*setBytes
			word(p[set+offSets:], fmt.Sprintf("ranks in set %d of rank %d", which, rank))
			word(p[set+offElectors:], fmt.Sprintf("hosts of set %d of rank %d", which, rank))
			at := offMembers + rank*perMember + offRecords + which*recordBytes
			word(p[at:], fmt.Sprintf("ballot in record %d of rank %d", which, rank))
			word(p[at+8*recordHosts:], fmt.Sprintf("hosts in record %d of rank %d", which, rank))
			word(p[at+8*recordRanks:], fmt.Sprintf("ranks in record %d of rank %d", which, rank))
		}
	}
}

// The ranks of a host promise and accept like one.
func TestExploreVoteWord(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		kills int
		speech
	}{
		{"accepted under two ballots", false, 1, speech{asked: [][]string{{"accept 1", "accept 2"}, {"prepare 3"}}, looks: 1}},
		{"a promise between", false, 1, speech{asked: [][]string{{"prepare 2"}, {"accept 1"}}, looks: 1}},
		{"promised twice", false, 0, speech{asked: [][]string{{"accept 1", "accept 2", "accept 3"}, {"prepare 1"}}, looks: 1}},
		{"the next generation", false, 1, speech{asked: [][]string{{"next 1"}, {"prepare 3"}}, looks: 1}},
		{"two take a ballot", false, 1, speech{asked: [][]string{{"take 0", "take 0"}, {"take 0"}}}},
		{"two accept", true, 2, speech{asked: [][]string{{"accept 1", "accept 3"}, {"prepare 2", "accept 2"}}, looks: 2}},
		{"three ranks", true, 2, speech{asked: [][]string{{"accept 1", "accept 3"}, {"prepare 2"}, {"accept 2"}}, looks: 1}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) { explore.Must(t, explore.Check(explore.Options{Kills: c.kills}, c.setup)) })
	}
}
