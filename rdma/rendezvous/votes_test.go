package rendezvous

import (
	"testing"

	"malt/rdma/vote"
)

// The page keeps what a host has promised, accepted and learned, at the ends of what the word
// has room for.
func TestVotesInPage(t *testing.T) {
	job := vote.Job{Hosts: 70, Of: make([]int, 200)}
	for rank := range job.Of {
		job.Of[rank] = rank * 70 / 200
	}
	p := page(make([]byte, pageBytes(2)))
	p.format(2, 0)
	stores := []*votes{{page: p, rank: 0, job: job}, {page: p, rank: 1, job: job}}
	members := vote.Members{Hosts: vote.SetOf(70, 3, 69), Ranks: vote.SetOf(200, 9, 199)}
	a := vote.Acceptor{Generation: vote.MaxGeneration}
	for n, s := range stores {
		_, at, ok := s.Look(vote.MaxGeneration)
		a.Promised = vote.Ballot(vote.MaxBallot - 1 + n)
		a.Accepted, a.Members = a.Promised, members
		if !ok || !s.Swap(at, a) || s.Swap(at, a) {
			t.Fatalf("rank %d: the word was swapped never, or twice", n)
		}
		for _, other := range stores {
			got, _, ok := other.Look(vote.MaxGeneration)
			if !ok || got.Promised != a.Promised || got.Accepted != a.Accepted || !got.Members.Equals(members) {
				t.Errorf("%+v, %v", got, ok)
			}
		}
	}
	if _, _, ok := stores[0].Look(vote.MaxGeneration - 1); ok {
		t.Error("a host votes on a view that it knows")
	}
	if v := stores[0].View(); v.Generation != 1 || !v.Members.Equals(job.Everyone()) {
		t.Errorf("the first view is %+v", v)
	}
	for _, g := range []uint64{5, 7, 6} {
		stores[g%2].Learn(vote.View{Generation: g, Members: members})
	}
	if v := stores[1].View(); v.Generation != 7 || !v.Members.Equals(members) {
		t.Errorf("the view is %+v", v)
	}
	if vote.Most < MaxSize {
		t.Errorf("votes are for %d ranks at most, a page for %d", vote.Most, MaxSize)
	}
}
