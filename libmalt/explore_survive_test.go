//go:build explore

package libmalt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/shared"
	"malt/libmalt/rule"
	"malt/rdma"
)

// Jobs that go on when a rank dies, in every interleaving, with a death at every step.
//
// d is an allreduce by messages, D a broadcast from rank 0. explore_mend_test.go has the
// route in place alone.

// entries of collective calls in the log of what was folded; clocks are below.
const firstCall = 8

// sum adds up a number with a bit of each rank: the sum tells who has taken part.
func (a *actor) sum(ctx context.Context) error {
	data := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(uint64(1)<<a.w.job.Rank)))
	err := a.w.AllReduce(ctx, data, reduce.Float64, "sum")
	if err == nil {
		set := byte(math.Float64frombits(binary.LittleEndian.Uint64(data)))
		a.took(set)
	}
	return err
}

// root gets a number from rank 0. Where that has died before it was all there, all who
// live get its death.
func (a *actor) root(ctx context.Context) error {
	b, err := a.w.Broadcast(ctx, []byte{5}, 0)
	var dead *rdma.PeerError
	switch {
	case errors.As(err, &dead) && dead.Rank == 0 && a.play.kills > 0:
		a.fold(firstCall+a.w.job.Calls(), refusal)
		return nil
	case err == nil && (len(b) != 1 || b[0] != 5):
		a.t.Fail("rank 0 has sent %v", b)
	case err == nil:
		a.fold(firstCall+a.w.job.Calls(), 1)
	}
	return err
}

// took books who has taken part in a call: this rank's view says the same, and has all
// who live.
func (a *actor) took(set byte) {
	if view := a.view(); set != view {
		a.t.Fail("ranks %#b have taken part, and the view has %#b", set, view)
	}
	a.included(set)
	a.fold(firstCall+a.w.job.Calls(), set)
}

// view is who takes part, as this rank sees it.
func (a *actor) view() (set byte) {
	for _, r := range a.w.Alive() {
		set |= 1 << r
	}
	return set
}

// averaged judges a sync in place: who has taken part, all who live among them, is the
// same for all, and all elements are the fold of their arrays. Of a mean, those of one
// block for each death may be a mean of some arrays that have the result already.
func (a *actor) averaged(clock uint64) {
	set, least, most := byte(0), math.Inf(1), math.Inf(-1)
	for _, r := range a.b.Route.(*shared.Route).Ranks() {
		set |= 1 << r
		least, most = min(least, valueOf(r, clock)), max(most, valueOf(r, clock))
	}
	a.included(set)
	op, blocks := a.v.mode.Load().fold, map[int]bool{}
	want := foldOf(op, set, clock)
	for at := 0; at < len(a.s.Data); at += 8 {
		got := math.Float64frombits(binary.LittleEndian.Uint64(a.s.Data[at:]))
		if got == want {
			continue
		}
		if blocks[at/core.BlockBytes] = true; op != reduce.Mean || got < least || got > most || len(blocks) > a.play.kills {
			a.t.Fail("at clock %d rank %d holds %v at %d, not the %s %v of the set %#b", clock, a.w.job.Rank, got, at, op, want, set)
		}
	}
	a.fold(clock, set|inPlaceBit)
}

// summed judges an allreduce of sums. All who are in the view afterwards have taken part;
// one that has died meanwhile may have, too. Each rank has the same view.
func (a *actor) summed(call uint64) error {
	got, err := uniform(a.s.Data)
	if err != nil {
		return err
	}
	for set := byte(1); set < 1<<a.w.job.Size; set++ {
		want := 0.0
		for r := range a.w.job.Size {
			if set>>r&1 != 0 {
				want += valueOf(r, call)
			}
		}
		if want == got {
			if view := a.view(); view&^set != 0 {
				a.t.Fail("ranks %#b have taken part in call %d, and the view has %#b", set, call, view)
			}
			a.included(set)
			a.fold(firstCall+call, set|a.view()<<4)
			return nil
		}
	}
	return fmt.Errorf("call %d of rank %d gives %v, the sum of no set of ranks", call, a.w.job.Rank, got)
}

// included holds that all who live have taken part.
func (a *actor) included(set byte) {
	for r, b := range a.all {
		if set>>r&1 == 0 && !b.out() {
			a.t.Fail("rank %d lives, and has not taken part (%#b)", r, set)
		}
	}
}

// same holds the arrays of all who live against each other.
func same(all []*actor, report func(string, ...any)) {
	var first *actor
	for _, a := range all {
		switch {
		case a.out():
		case first == nil:
			first = a
		case !bytes.Equal(a.s.Data, first.s.Data):
			report("rank %d holds %x, rank %d %x", first.w.job.Rank, first.s.Data, a.w.job.Rank, a.s.Data)
		}
	}
}

// edged tells whether the object travels in queues that ranks may come to read, and cease to,
// in a play of syncs alone: the update of each clock is then folded at that clock.
func (a *actor) edged() bool {
	return a.play.own(survive) > 0 && a.s.mode.Load().Rule.Kind == rule.NotifyAck
}

// sent enters for whom the update of clock was.
func (a *actor) sent(clock uint64) {
	set := byte(0)
	for _, r := range a.b.Served() {
		set |= 1 << r
	}
	a.log[entryBytes*(16*a.w.job.Rank+int(clock))+1] = set
}

// kept holds what was sent on the edges of queues against what was folded: all of it, by
// each rank that lives and has come to that clock.
func kept(all []*actor, report func(string, ...any)) {
	for _, from := range all {
		for _, to := range all {
			for clock := range uint64(16) {
				sent := from.log[entryBytes*(16*from.w.job.Rank+int(clock))+1]
				folded := *to.entry(to.w.job.Rank, clock)
				if !to.t.Dead() && folded != 0 && sent>>to.w.job.Rank&1 != 0 && folded>>from.w.job.Rank&1 == 0 {
					report("rank %d has sent its update of clock %d to rank %d, which has folded %#b there", from.w.job.Rank, clock, to.w.job.Rank, folded)
				}
			}
		}
	}
}

func TestExploreSurvivors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"bsp", false, play{"consistency=bsp survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"bsp, three ranks", true, play{"consistency=bsp survive=1 preemptions=1", []string{"s", "s", "s"}, 1, false, nil}},
		{"bsp, barrier", false, play{"consistency=bsp survive=1", []string{"sbs", "sbs"}, 1, false, nil}},
		{"ssp", false, play{"consistency=ssp:0 survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"async", true, play{"consistency=async survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"notify-ack", false, play{"consistency=notify-ack survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"notify-ack, a new edge", false, play{"consistency=notify-ack graph=ring survive=1 preemptions=1", []string{"s", "", "s"}, 1, false, nil}},
		{"notify-ack, a new edge for long", true, play{"consistency=notify-ack graph=ring survive=1 preemptions=1", []string{"ss", "", "ss"}, 1, false, nil}},
		{"notify-ack, any death on a ring", true, play{"consistency=notify-ack graph=ring survive=1 preemptions=1", []string{"s", "s", "s"}, 1, false, nil}},
		{"sparse", false, play{"consistency=bsp sparse=model survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"barriers", false, play{"consistency=bsp survive=1", []string{"bb", "bb"}, 1, false, nil}},
		{"sum", true, play{"consistency=bsp survive=1 preemptions=2", []string{"d", "d", "d"}, 1, false, nil}},
		{"sum of several messages", true, play{"consistency=bsp survive=1 split=1 preemptions=1", []string{"d", "d", "d"}, 1, false, nil}},
		{"sums of several messages", false, play{"consistency=bsp survive=1 split=1", []string{"dd", "dd"}, 1, false, nil}},
		{"sum after a scatter", false, play{"consistency=async survive=1 preemptions=1", []string{"pd", "d"}, 1, false, nil}},
		{"broadcast", true, play{"consistency=bsp survive=1 split=1 preemptions=1", []string{"D", "D", "D"}, 1, false, nil}},
		{"news of the dead", false, play{"consistency=ssp:0 survive=1 preemptions=1", []string{"pb", "b", "b"}, 1, false, nil}},
		{"in place", false, play{"survive=1 preemptions=2", []string{"i", "i"}, 1, false, nil}},
		{"in place, sum", false, play{"survive=1 preemptions=1", []string{"a", "a"}, 1, false, nil}},
		{"in place, twice", false, play{"survive=1 preemptions=1", []string{"aa", "aa"}, 1, false, nil}},
		{"in place, given up", false, play{"survive=1 preemptions=1", []string{"xi", "ii"}, 1, false, nil}},
		{"in place, barrier", false, play{"survive=1 preemptions=1", []string{"Ki", "ibi"}, 1, false, nil}},
		{"in place, small", false, play{"survive=1 small=2 preemptions=2", []string{"i", "i"}, 1, false, nil}},
		{"in place, small for one", false, play{"survive=1 small=1 preemptions=1", []string{"ii", "ii"}, 1, false, nil}},
		{"in place, small, sum", false, play{"survive=1 small=2 preemptions=1", []string{"aa", "aa"}, 1, false, nil}},
		{"in place, small, given up", false, play{"survive=1 small=2 preemptions=1", []string{"xi", "ii"}, 1, false, nil}},
		{"allreduce in place", false, play{"consistency=async survive=1 preemptions=1", []string{"r", "r"}, 1, false, nil}},
		{"bsp, three ranks, two deaths", true, play{"consistency=bsp survive=1 preemptions=2", []string{"s", "s", "s"}, 2, false, nil}},
		{"sum, two deaths", true, play{"consistency=bsp survive=1 preemptions=2", []string{"d", "d", "d"}, 2, false, nil}},
		{"sum of several messages, two deaths", true, play{"consistency=bsp survive=1 split=1 preemptions=2", []string{"d", "d", "d"}, 2, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
