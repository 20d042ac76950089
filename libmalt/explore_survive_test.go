//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"malt/libmalt/reduce"
	"malt/rdma"
)

// Jobs that go on when a rank dies, in every interleaving, with a death at every step.
//
// d is an allreduce by messages, D a broadcast from rank 0.

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
	view := byte(0)
	for _, r := range a.w.Alive() {
		view |= 1 << r
	}
	if set != view {
		a.t.Fail("ranks %#b have taken part, and the view has %#b", set, view)
	}
	for r, b := range a.all {
		if set>>r&1 == 0 && !b.t.Dead() {
			a.t.Fail("rank %d lives, and has not taken part (%#b)", r, set)
		}
	}
	a.fold(firstCall+a.w.job.Calls(), set)
}

func TestExploreSurvivors(t *testing.T) {
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
		{"sparse", false, play{"consistency=bsp sparse=model survive=1", []string{"ss", "ss"}, 1, false, nil}},
		{"barriers", false, play{"consistency=bsp survive=1", []string{"bb", "bb"}, 1, false, nil}},
		{"sum", true, play{"consistency=bsp survive=1 preemptions=2", []string{"d", "d", "d"}, 1, false, nil}},
		{"sum of several messages", true, play{"consistency=bsp survive=1 split=1 preemptions=1", []string{"d", "d", "d"}, 1, false, nil}},
		{"sums of several messages", false, play{"consistency=bsp survive=1 split=1", []string{"dd", "dd"}, 1, false, nil}},
		{"sum after a scatter", false, play{"consistency=async survive=1 preemptions=1", []string{"pd", "d"}, 1, false, nil}},
		{"broadcast", true, play{"consistency=bsp survive=1 split=1 preemptions=1", []string{"D", "D", "D"}, 1, false, nil}},
		{"news of the dead", false, play{"consistency=ssp:0 survive=1 preemptions=1", []string{"pb", "b", "b"}, 1, false, nil}},
		{"bsp, three ranks, two deaths", true, play{"consistency=bsp survive=1 preemptions=2", []string{"s", "s", "s"}, 2, false, nil}},
		{"sum, two deaths", true, play{"consistency=bsp survive=1 preemptions=2", []string{"d", "d", "d"}, 2, false, nil}},
		{"sum of several messages, two deaths", true, play{"consistency=bsp survive=1 split=1 preemptions=2", []string{"d", "d", "d"}, 2, false, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && !large {
				t.Skip("MALT_EXPLORE=big runs this")
			}
			t.Parallel()
			c.play.run(t)
		})
	}
}
