//go:build explore

package libmalt

import (
	"context"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/explored"
)

// Survivors on several hosts, in every interleaving: of what a dead rank has sent, each host
// has another part.

// digits are those of a number, the first one first.
func digits(n int) (all []int) {
	for ; n > 0; n /= 10 {
		all = append([]int{n % 10}, all...)
	}
	return all
}

// settle gives the actors their queues for settling.
func (p *play) settle(job *explored.Job, all []*actor) {
	outs, ins := make([]rdma.Outbox, len(all)), make([][]rdma.Inbox, len(all))
	for r := range all {
		ins[r] = make([]rdma.Inbox, len(all))
	}
	depth := 1
	if p.own(opens) > 0 {
		depth = 2 // so that a rank that dies has sent all to some, and nothing to others
	}
	for r := range all {
		others := rdma.Everyone(len(all)).Others(r)
		out, in, err := job.Box(r, rdma.Spec{Bytes: 160, Mode: rdma.Queue(depth)}, others)
		if err != nil {
			panic(err)
		}
		outs[r] = out
		for i, to := range others {
			ins[to][r] = in[i]
		}
	}
	done := job.Words("done", 1)
	for r, a := range all {
		a.w.job.ConnectSettling(outs[r], ins[r])
		a.done = done[r]
	}
}

// open has the play begin with a schedule, if it says so. At its end all hear of the death.
func (p *play) open(x *explore.Exec, all []*actor, kernel *explore.Thread) {
	var order []*explore.Thread
	for _, rank := range digits(p.own(opens)) {
		if order = append(order, all[rank-1].t); rank == p.own(died) {
			all[rank-1].t.Doomed()
		}
	}
	if len(order) > 0 {
		x.Open(append(order, kernel)...)
	}
}

// stay is a call of which only the settling matters, until all who take part make it: a rank
// that leaves takes along what others may need. false: this rank has been left out.
func (a *actor) stay(ctx context.Context) bool {
	a.stays = true
	a.done.Set(0, 1)
	a.tr.Local = func() []any { return append(a.local(), "stay") }
	err := a.tr.Wait(ctx, func() bool {
		_, generation, err := a.w.job.Settled(nil)
		if err != nil || generation == 0 {
			return err != nil
		}
		view := a.w.job.Adopt()
		if a.changes() && view.Generation != generation {
			return false
		}
		for _, r := range view.Ranks {
			if done, _ := a.done.Get(r, 0); done == 0 {
				return false
			}
		}
		return true
	})
	if err != nil && !a.out() {
		a.t.Fail("staying: %v", err)
	}
	return err == nil
}

// out tells whether a is dead, or left out.
func (a *actor) out() bool {
	return a.t.Dead() || a.tr != nil && a.play.own(apart) > 0 && a.tr.Expelled()
}

// left holds those who live against each other: of one who died before all had done all, all have the
// same changes.
func left(all []*actor, report func(string, ...any)) {
	for _, dead := range all {
		var first *actor
		for _, a := range all {
			switch r := dead.w.job.Rank; {
			case !dead.t.Dead() || dead.stays || a.out():
			case first == nil:
				first = a
			case a.upTo[r] != first.upTo[r]:
				report("of rank %d, which died, rank %d has %d changes, and rank %d %d", r, first.w.job.Rank, first.upTo[r], a.w.job.Rank, a.upTo[r])
			}
		}
	}
}

func TestExploreSettling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"bsp", false, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=1", []string{"s", "s", "p"}, 1, false, nil}},
		{"bsp, to one rank", false, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=-1", []string{"s", "s", "q"}, 1, false, nil}},
		{"bsp, closed", false, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=-1", []string{"sc", "s", "p"}, 1, false, nil}},
		{"bsp, a whole sync", true, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=1", []string{"s", "s", "s"}, 1, false, nil}},
		{"bsp, two steps", true, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=1", []string{"ss", "ss", "p"}, 1, false, nil}},
		{"sum", false, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=1", []string{"d", "d", "d"}, 1, false, nil}},
		{"sum of several messages", true, play{"consistency=bsp survive=1 apart=123 dies=3 split=1 preemptions=1", []string{"d", "d", "d"}, 1, false, nil}},
		{"sums", true, play{"consistency=bsp survive=1 apart=123 dies=3 preemptions=1", []string{"dd", "dd", "dd"}, 1, false, nil}},
		{"broadcast", true, play{"consistency=bsp survive=1 apart=123 dies=1 split=1 preemptions=1", []string{"D", "D", "D"}, 1, false, nil}},
		{"news of the dead", true, play{"consistency=ssp:0 survive=1 apart=123 dies=3 preemptions=1", []string{"b", "b", "pb"}, 1, false, nil}},
		{"two on a host", true, play{"consistency=bsp survive=1 apart=122 dies=3 preemptions=1", []string{"d", "d", "d"}, 1, false, nil}},
		{"left out alive", true, play{"consistency=bsp survive=1 apart=123 cut=3 preemptions=1", []string{"d", "d", "d"}, 0, false, nil}},
		{"bsp, left out alive", true, play{"consistency=bsp survive=1 apart=123 cut=3 preemptions=1", []string{"s", "s", "s"}, 0, false, nil}},
		{"sum, a death while settling", false, play{"consistency=bsp survive=1 apart=1234 opens=1342 died=4 dies=2 preemptions=-1", []string{"d", "d", "d", "d"}, 2, false, nil}},
		{"bsp, a death while settling", false, play{"consistency=bsp survive=1 apart=1234 opens=1342 died=4 dies=2 preemptions=-1", []string{"s", "s", "s", "s"}, 2, false, nil}},
		{"changes in bsp", true, play{"consistency=bsp fold=sum-changes survive=1 apart=123 dies=3 preemptions=1", []string{"S", "S", "S"}, 1, false, nil}},
		{"changes in bsp, two steps", true, play{"consistency=bsp fold=sum-changes survive=1 apart=123 dies=3 preemptions=1", []string{"SSh", "SSh", "SPh"}, 1, false, nil}},
		{"changes in ssp", true, play{"consistency=ssp:1 fold=sum-changes survive=1 apart=123 dies=3 preemptions=1", []string{"SGh", "SGh", "PPh"}, 1, false, nil}},
		{"changes in async", true, play{"consistency=async fold=sum-changes survive=1 apart=123 dies=3 preemptions=1", []string{"G", "G", "P"}, 1, false, nil}},
		{"changes in async, allreduce", true, play{"consistency=async fold=sum-changes survive=1 apart=123 dies=3 preemptions=1", []string{"Gh", "Gh", "Ph"}, 1, false, nil}},
		{"changes, a death while settling", false, play{"consistency=async fold=sum-changes survive=1 apart=1234 opens=1342 died=4 dies=2 preemptions=-1", []string{"G", "G", "G", "P"}, 2, false, nil}},
		{"changes, given before a death", true, play{"consistency=async fold=sum-changes survive=1 apart=1234 opens=1342 died=4 dies=2 preemptions=-1", []string{"bG", "b", "b", "P"}, 2, false, nil}},
		{"changes in bsp, a death while settling", true, play{"consistency=bsp fold=sum-changes survive=1 apart=1234 opens=1342 died=4 dies=2 preemptions=-1", []string{"S", "S", "S", "S"}, 2, false, nil}},
		{"exchange of two", false, play{"survive=1 apart=12 preemptions=2", []string{"i", "i"}, 1, false, []int{0, 1}}},
		{"exchanges of two", false, play{"survive=1 apart=12 preemptions=2", []string{"ii", "ii"}, 1, false, []int{0, 1}}},
		{"exchange within a host", true, play{"survive=1 apart=112 dies=3 preemptions=1", []string{"i", "i", "i"}, 1, false, []int{0, 0, 1}}},
		{"exchange, one of two dies", true, play{"survive=1 apart=112 dies=2 preemptions=1", []string{"i", "i", "i"}, 1, false, []int{0, 0, 1}}},
		{"exchange of three", true, play{"survive=1 apart=123 dies=3 preemptions=1", []string{"i", "i", "i"}, 1, false, []int{0, 1, 2}}},
		{"exchange, left out alive", true, play{"survive=1 apart=12 cut=2 preemptions=2", []string{"i", "i"}, 0, false, []int{0, 1}}},
		{"exchange, given up", true, play{"survive=1 apart=12 preemptions=2", []string{"x", "i"}, 1, false, []int{0, 1}}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
