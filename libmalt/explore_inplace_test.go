//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/hosts"
	"malt/libmalt/route/shared"
	"malt/rdma/explored"
)

// Averages in place, in every interleaving: of the words, and of what is done to
// the blocks of the arrays.
//
// i is a sync, a one with sum in place of mean; x one that may run into its timeout, after
// which a gather follows; K one that may, after which a barrier follows, and then the gather
// if it did; X one that may, and no more.

// share gives the actors a vector of a block more than there are ranks.
func share(job *explored.Job, all []*actor) {
	n := len(all)
	bytes := (n + 1) * core.CutBytes
	room, words, claims := shared.Layout(bytes)
	for r, memory := range job.Shared("shared", room, words, claims) {
		v, b := all[r].v, all[r].b
		b.Of([]reduce.Run{{Type: reduce.Float64, Bytes: bytes}})
		v.Kind, b.Route, v.Data = "vector", shared.On(b.ForRoute(), memory, bytes, all[r].play.own(small) > min(r, 1)), memory.Bytes(r)[:bytes:bytes]
		v.Base = &v.Data[0]
	}
}

// valueOf is what a rank has in all elements when it syncs, or scatters, at that
// clock: no two sets of ranks have the same mean.
func valueOf(rank int, clock uint64) float64 {
	return math.Sqrt(float64(2 + 7*clock + 31*uint64(rank)))
}

func weightOf(rank int, clock uint64) float64 { return float64(1 + (clock+uint64(rank))%2) }

func (a *actor) fillValue(clock uint64) {
	for i := 0; i < len(a.s.Data); i += 8 {
		binary.LittleEndian.PutUint64(a.s.Data[i:], math.Float64bits(valueOf(a.w.job.Rank, clock)))
	}
}

func (a *actor) readValue(u Update) error {
	got, err := uniform(u.Data)
	if want := valueOf(u.Rank, u.Clock); err == nil && got != want {
		err = fmt.Errorf("holds %v, not %v", got, want)
	}
	return err
}

// uniform is the value of all elements.
func uniform(b []byte) (float64, error) {
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[i:])) }
	for i := range len(b) / 8 {
		if at(8*i) != at(0) {
			return 0, fmt.Errorf("holds %v in element 0 and %v in element %d", at(0), at(8*i), i)
		}
	}
	return at(0), nil
}

// inPlaceBit says in a log that what was folded was so in place.
const inPlaceBit = 1 << 6

// average is a sync, and what its letter says besides.
func (a *actor) average(ctx context.Context, letter rune) error {
	clock := a.s.Clock() + 1
	a.fill(clock)
	patience := ctx
	a.v.mode.Load().fold = reduce.Mean
	if letter == 'a' {
		a.v.mode.Load().fold = reduce.Sum
	}
	if letter != 'i' && letter != 'a' {
		patience = &explored.Patience{Context: ctx}
	}
	_, err := a.v.Sync(patience, weightOf(a.w.job.Rank, a.s.Clock()+1))
	if letter == 'K' && (err == nil || errors.Is(err, ErrTimeout)) {
		if failed := a.barrier(ctx); failed != nil {
			return failed
		}
	}
	switch {
	case err == nil:
	case !errors.Is(err, ErrTimeout):
		return err
	case letter == 'X':
		return nil
	default:
		if _, err := a.v.Gather(ctx, ""); err != nil {
			return err
		}
	}
	if a.s.Clock() > clock {
		return nil // the barrier has levelled it with that of a rank which went on alone
	}
	if at, byRoute := a.routed(); byRoute && a.play.own(survive) > 0 && a.play.host == nil {
		if at == a.s.Clock() {
			a.averaged(at)
		}
		return nil
	}
	set, err := a.whose()
	if err != nil {
		a.t.Fail("at clock %d rank %d %v", a.s.Clock(), a.w.job.Rank, err)
	}
	if a.play.own(survive) > 0 && !a.out() {
		a.included(set)
	}
	at, byRoute := a.routed()
	if byRoute && at == a.s.Clock() {
		if all := byte(1)<<a.w.job.Size - 1; set != all {
			a.t.Fail("at clock %d rank %d has the mean of the set %#b, in place", a.s.Clock(), a.w.job.Rank, set)
		}
		set |= inPlaceBit
	}
	if at == a.s.Clock() || a.play.own(survive) > 0 { // after a death no sync begins on the route
		a.fold(a.s.Clock(), set)
	}
	return nil
}

// routed is the clock of the last sync that began on the route, and whether it was done
// there.
func (a *actor) routed() (clock uint64, done bool) {
	switch r := a.b.Route.(type) {
	case *shared.Route:
		return r.Last()
	case *hosts.Route:
		return r.Last()
	}
	return 0, false
}

// whose finds the ranks of whose arrays this rank's is the mean, or sum.
func (a *actor) whose() (set byte, err error) {
	got, err := uniform(a.s.Data)
	if err != nil {
		return 0, err
	}
	for set = 1; set < 1<<a.w.job.Size; set++ {
		want := foldOf(a.v.mode.Load().fold, set, a.s.Clock())
		if _, ok := a.b.Route.(*hosts.Route); ok {
			want = a.byHost(set)
		}
		if set&(1<<a.w.job.Rank) != 0 && want == got {
			return set, nil
		}
	}
	return 0, fmt.Errorf("holds %v, the %s of no set of ranks", got, a.v.mode.Load().fold)
}

// foldOf is the fold of the values of a set of ranks at that clock.
func foldOf(op reduce.Op, set byte, clock uint64) float64 {
	var srcs [][]byte
	var weights []float64
	for r := range 8 {
		if set&(1<<r) != 0 {
			srcs = append(srcs, binary.LittleEndian.AppendUint64(nil, math.Float64bits(valueOf(r, clock))))
			weights = append(weights, weightOf(r, clock))
		}
	}
	dst := make([]byte, 8)
	reduce.Fold(op, reduce.Float64, dst, srcs, weights)
	return math.Float64frombits(binary.LittleEndian.Uint64(dst))
}

// claims compares what each rank claims, dead ranks included, with the arrays.
func claims(all []*actor, report func(string, ...any)) {
	for _, a := range all {
		c := a.b.Route.(*shared.Route).Claim()
		if !c.Holds || c.Lo >= c.Hi {
			continue
		}
		op := c.Op
		if c.Call {
			op = reduce.Sum // of all calls
		}
		set := byte(0)
		for _, r := range c.Ranks {
			set |= 1 << r
		}
		if op == reduce.Mean && a.play.own(survive) > 0 {
			continue // see averaged
		}
		want := foldOf(op, set, c.Number)
		for _, r := range c.Ranks {
			b := all[r]
			got, err := uniform(b.s.Data[c.Lo:c.Hi])
			if err != nil || got != want {
				report("rank %d claims %d blocks of clock %d, and rank %d holds %v (%v), not %v", a.w.job.Rank, c.Blocks, c.Number, b.w.job.Rank, got, err, want)
			}
		}
	}
}

func TestExploreInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two ranks", false, play{"", []string{"ii", "ii"}, 0, false, nil}},
		{"two ranks, a death", false, play{"", []string{"i", "i"}, 1, false, nil}},
		{"plain stores", false, play{"", []string{"i", "i"}, 0, true, nil}},
		{"given up, a death", true, play{"", []string{"xi", "ii"}, 1, false, nil}},
		{"three ranks", true, play{"", []string{"i", "i", "i"}, 0, false, nil}},
		{"three ranks, one scatters by itself", true, play{"", []string{"i", "i", "s"}, 0, false, nil}},
		{"three ranks, one gives up", true, play{"", []string{"i", "i", "X"}, 0, false, nil}},
		{"different folds", false, play{"", []string{"ia", "ii"}, 0, false, nil}},
		{"uneven", false, play{"", []string{"i", "ii"}, 0, false, nil}},
		{"one scatters by itself", false, play{"", []string{"isi", "iii"}, 0, false, nil}},
		{"given up", false, play{"", []string{"xi", "ii"}, 0, false, nil}},
		{"given up for good", false, play{"", []string{"X", "i"}, 0, false, nil}},
		{"both given up", true, play{"", []string{"xs", "xi"}, 0, false, nil}},
		{"barrier", false, play{"", []string{"bi", "ib"}, 0, false, nil}},
		{"given up, barrier", false, play{"", []string{"Ki", "ib"}, 0, false, nil}},
		{"closed", false, play{"", []string{"icw", "ii"}, 0, false, nil}},
		{"small", false, play{"small=2", []string{"ii", "ii"}, 0, false, nil}},
		{"small, a death", false, play{"small=2", []string{"i", "i"}, 1, false, nil}},
		{"small, uneven", false, play{"small=2", []string{"i", "ii"}, 0, false, nil}},
		{"small, one scatters by itself", false, play{"small=2", []string{"isi", "iii"}, 0, false, nil}},
		{"small, given up", false, play{"small=2", []string{"xi", "ii"}, 0, false, nil}},
		{"small, given up, barrier", true, play{"small=2", []string{"Ki", "ib"}, 0, false, nil}},
		{"small for one", false, play{"small=1", []string{"ii", "ii"}, 0, false, nil}},
		{"small for one, a death", false, play{"small=1", []string{"i", "i"}, 1, false, nil}},
		{"small for one, one scatters by itself", false, play{"small=1", []string{"isi", "iii"}, 0, false, nil}},
		{"small for one, given up", false, play{"small=1", []string{"ii", "xi"}, 0, false, nil}},
		{"small, three ranks", true, play{"small=2", []string{"i", "i", "i"}, 0, false, nil}},
		{"given up and closed", false, play{"", []string{"Xcw", "i"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
