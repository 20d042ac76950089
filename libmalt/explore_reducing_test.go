//go:build explore

package libmalt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/internal/core"
	"malt/rdma/explored"
)

// Allreduces in place, in every interleaving.
//
// r is an allreduce and R one that may find that another rank has given it up, as the
// others may; m, M and n are one, one with another fold, and a barrier, of which each
// must find that another rank makes another call; where that may time out, and be
// given up, Q is the first and N the last. Y, y and z may run into their timeout, and
// are given up then; after y comes a gather and after z a scatter, and what the rank
// has in its array from then on, v finds there. o is a broadcast from rank 0; after a script that ends with one
// all arrays are alike.

func (p *play) reduces() bool { return strings.ContainsAny(strings.Join(p.scripts, ""), "rRYyzomMnNQ") }

func (a *actor) fillWith(value float64) {
	for i := 0; i < len(a.s.Data); i += 8 {
		binary.LittleEndian.PutUint64(a.s.Data[i:], math.Float64bits(value))
	}
}

// meeting is what the steps of the collective call on its way depend on, if there is
// one. The fault that it names is set when it fails, after its last step. What it keeps
// of others' data follows from its number, but for a broadcast's.
func (a *actor) meeting() (state []any) {
	op := any(a.w.job.Gate.Op())
	if o, ok := op.(interface {
		State() []any
		ByMessages() core.Call
	}); ok {
		op, state = o.ByMessages(), o.State()
	}
	if c, ok := op.(*core.Collective); ok {
		of, sink := c.State()
		state = append(state, of...)
		if f, ok := sink.(*fill); ok {
			state = append(state, f.scratch)
		}
	}
	return state
}

// reduce is an allreduce, or what its letter says.
func (a *actor) reduce(ctx context.Context, letter rune) error {
	n := a.w.job.Calls() + 1
	if letter == 'o' {
		err := a.v.Broadcast(ctx, 0)
		if err == nil {
			a.levelled(n)
		}
		return err
	}
	a.fillWith(valueOf(a.w.job.Rank, n))
	patience := ctx
	if strings.ContainsRune("yzYN", letter) {
		patience = &explored.Patience{Context: ctx}
	}
	var err error
	switch letter {
	case 'n', 'N':
		err = a.w.Barrier(patience)
	case 'M':
		err = a.v.AllReduce(ctx, "max")
	default:
		err = a.v.AllReduce(patience, "sum")
	}
	switch {
	case strings.ContainsRune("mMn", letter):
		if !errors.Is(err, ErrMismatch) {
			return fmt.Errorf("two calls are taken for one: %w", err)
		}
		return nil
	case letter == 'N' && errors.Is(err, ErrTimeout):
		return nil
	case strings.ContainsRune("QN", letter):
		if !errors.Is(err, ErrMismatch) && !errors.Is(err, ErrLeft) {
			return fmt.Errorf("two calls are taken for one: %w", err)
		}
		return nil
	case letter != 'r' && errors.Is(err, ErrLeft):
		return nil
	case patience != ctx && errors.Is(err, ErrTimeout):
		return a.gaveUp(ctx, letter)
	case err != nil:
		return err
	}
	if a.play.own(survive) > 0 {
		return a.summed(n)
	}
	want := 0.0
	for r := range a.w.job.Size {
		want += valueOf(r, n)
	}
	if got, err := uniform(a.s.Data); err != nil || got != want {
		a.t.Fail("call %d of rank %d gives %v (%v), not %v", n, a.w.job.Rank, got, err, want)
	}
	a.levelled(n)
	return nil
}

// levelled holds this rank's clock after call n against the others'.
func (a *actor) levelled(n uint64) {
	a.levels = append(a.levels, a.s.Clock())
	for _, b := range a.all {
		if a.play.own(apart) > 0 && (a.out() || b.out()) {
			continue // it may have been in the call with others
		}
		if i := len(a.levels) - 1; i < len(b.levels) && b.levels[i] != a.levels[i] {
			a.t.Fail("after call %d rank %d is at clock %d, rank %d at %d", n, a.w.job.Rank, a.levels[i], b.w.job.Rank, b.levels[i])
		}
	}
}

// gaveUp makes another call after an allreduce that has timed out. Then the array is this
// rank's alone.
func (a *actor) gaveUp(ctx context.Context, letter rune) (err error) {
	switch letter {
	case 'Y':
		return nil
	case 'y':
		_, err = a.v.Gather(ctx, "")
	default:
		_, err = a.v.Scatter(ctx, nil, 1)
	}
	if err == nil {
		a.mine = float64(1 + a.w.job.Rank)
		a.fillWith(a.mine)
	}
	return err
}

// kept looks whether nobody has written into the array since it was given up.
func (a *actor) kept() error {
	if got, err := uniform(a.s.Data); a.mine != 0 && (err != nil || got != a.mine) {
		return fmt.Errorf("the array of rank %d, which has given up, holds %v (%v), not %v", a.w.job.Rank, got, err, a.mine)
	}
	return nil
}

// alike holds the arrays against each other.
func alike(all []*actor, report func(string, ...any)) {
	for _, a := range all {
		if a.t.Dead() || !strings.HasSuffix(a.play.scripts[a.w.job.Rank], "o") {
			return
		}
	}
	for _, a := range all[1:] {
		if !bytes.Equal(a.s.Data, all[0].s.Data) {
			report("after a broadcast rank %d holds %x, rank 0 %x", a.w.job.Rank, a.s.Data, all[0].s.Data)
		}
	}
}

func TestExploreReducing(t *testing.T) {
	t.Parallel()
	const async = "consistency=async"
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two ranks", false, play{async, []string{"rr", "rr"}, 0, false, nil}},
		{"a death", false, play{async, []string{"r", "r"}, 1, false, nil}},
		{"plain stores", false, play{async, []string{"r", "r"}, 0, true, nil}},
		{"given up, then a gather", false, play{async, []string{"ywv", "R"}, 0, false, nil}},
		{"given up, then a scatter", false, play{async, []string{"zwv", "R"}, 0, false, nil}},
		{"given up, then another", true, play{async, []string{"yr", "Rr"}, 0, false, nil}},
		{"given up, then a broadcast", false, play{async, []string{"Yo", "Ro"}, 0, false, nil}},
		{"both given up", true, play{async, []string{"yr", "yr"}, 0, false, nil}},
		{"between syncs", false, play{"", []string{"iri", "iri"}, 0, false, nil}},
		{"before a sync", false, play{"", []string{"ri", "ri"}, 0, false, nil}},
		{"after a scatter", false, play{"", []string{"sr", "sr"}, 0, false, nil}},
		{"at different clocks", false, play{async, []string{"prr", "rpr"}, 0, false, nil}},
		{"news of a card that nobody reads", false, play{async, []string{"pRo", "Yo"}, 0, false, nil}},
		{"seen, without news", false, play{"", []string{"pbrs", "pbrs"}, 0, false, nil}},
		{"another call", false, play{async, []string{"m", "n"}, 0, false, nil}},
		{"another call, given up", false, play{async, []string{"Q", "NQ"}, 0, false, nil}},
		{"another call, given up, then the same", true, play{async, []string{"Qr", "Nr"}, 0, false, nil}},
		{"one has ended", false, play{async, []string{"R", ""}, 0, false, nil}},
		{"another fold", false, play{async, []string{"m", "M"}, 0, false, nil}},
		{"given up, a death", true, play{async, []string{"y", "R"}, 1, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
