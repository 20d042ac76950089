//go:build explore

package rendezvous

import (
	"context"
	"fmt"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/vote"
)

// learners is a case of a job on two hosts, of which this is one: a rank has died, and others
// here learn that the hosts have decided on a view without it, and may die, too. Rank 0
// sleeps until it knows.
type learners struct {
	count int
	least int
}

func (c learners) setup(x *explore.Exec) {
	here := 2 + c.count // rank 0, the dead one, and the learners
	size := here + 1
	cfg := Config{Size: size, Members: everyone(here), Elsewhere: func(int) error { return nil }, Said: func(int) bool { return false }}
	cfg.Hosts = make([]int, size)
	cfg.Hosts[here] = 1
	p := page(x.Memory(pageBytes(size)))
	x.Names(func(word func([]byte, string)) {
		nameVotes(word, p, size)
		word(p[offMembers+offBell:], "bell")
		for rank := range size {
			word(p[offMembers+rank*perMember+offState:], fmt.Sprint("state of rank ", rank))
		}
	})
	p.format(size, 0)
	for rank := range here {
		p.state(rank).Store(alive)
	}
	p.state(1).Store(dead)
	host := func(rank int) *Host {
		own := cfg
		own.Rank = rank
		h := &Host{cfg: own, members: []int{0, 1}, page: p} // nobody sleeps on the bells of the others
		h.Survive(max(1, c.least))
		return h
	}
	job := host(0).votesOf()
	next := vote.View{Generation: 2, Members: vote.Members{Hosts: vote.Everyone(2), Ranks: vote.Everyone(size)}}
	next.Ranks.Remove(1)

	var threads []*explore.Thread
	for i := range c.count {
		b := host(2 + i).Ballots()
		threads = append(threads, x.Go(fmt.Sprint("learner ", i), func(t *explore.Thread) {
			b.Learn(next)
			t.At("learned")
			if v := b.View(); v.Generation != 2 || !v.Members.Equals(next.Members) {
				t.Fail("the view is %v", v)
			}
		}))
	}
	h0 := host(0)
	h0.deaths = &deaths{h: h0}
	x.Go("watcher", func(t *explore.Thread) {
		var known []int
		for {
			t.At("watch", known)
			i := t.AwaitDeath(threads, &known)
			if i < 0 {
				return
			}
			h0.deaths.publish(2 + i)
		}
	}).Immune()
	x.Go("sleeper", func(t *explore.Thread) {
		t.At("sleep")
		err := h0.Wait(context.Background(), 0, Policy{}, func() bool {
			t.At("look", t.Returned()>>1)
			return h0.State(1) != nil || c.gone(threads)
		})
		if err != nil {
			t.Fail("%v", err)
		}
		if h0.State(1) == nil {
			return
		}
		v := vote.Voter{Store: &votes{page: p, rank: 0, job: job}}.View()
		if v.Ranks.Has(1) {
			t.Fail("rank 1 is known to be dead, and the view %v has it", v)
		}
		enough := size-1 >= c.least
		if mine := h0.View(); mine.Has(1) == enough || mine.Generation == 1 == enough {
			t.Fail("the view is %v where %d ranks are needed", mine, c.least)
		}
		if h0.State(here) != nil {
			t.Fail("rank %d is in the view, and not dead", here)
		}
	}).Immune()
}

// gone tells whether nobody is left to learn.
func (c learners) gone(threads []*explore.Thread) bool {
	for _, l := range threads {
		if !l.Dead() {
			return false
		}
	}
	return true
}

func everyone(size int) []int { return rdma.Everyone(size).Ranks }

// On several hosts a rank that has died is not said to be dead before the page has a view
// without it, and then nobody sleeps on.
func TestExploreBallots(t *testing.T) {
	for _, c := range []struct {
		name               string
		large              bool
		kills, preemptions int
		learners
	}{
		{"one learns", false, 1, 0, learners{count: 1}},
		{"too few are left", false, 0, 0, learners{count: 1, least: 4}},
		{"two learn", true, 1, 1, learners{count: 2}},
		{"two learn, two die", true, 2, 2, learners{count: 2}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.setup))
		})
	}
}
