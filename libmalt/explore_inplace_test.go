//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"malt/libmalt/consistency"
	"malt/libmalt/reduce"
	"malt/rdma/explored"
)

// Averages in place, in every interleaving: of the words, and of what is done to
// the blocks of the arrays.
//
// i is a sync, a one with sum in place of mean; k one that may run into its timeout and keeps its place then, for
// the i to come; x one that may, and is given up and gathered then; X one that is
// given up and no more.

// share gives the actors a vector of a block more than there are ranks.
func share(job *explored.Job, all []*actor) {
	n := len(all)
	bytes := (n + 1) * cutBytes
	for r, shared := range job.Shared("shared", cardAt(bytes)+cardBytes, inplaceWords, wordDone) {
		v := all[r].v
		v.kind, v.shared, v.data = "vector", shared, shared.Bytes(r)[:bytes:bytes]
		v.base, v.ch.everyone = &v.data[0], v.mode.consistency.Kind == consistency.BSP
		v.runs = []run{{reduce.Float64, 0, bytes}}
	}
}

// valueOf is what a rank has in all elements when it syncs, or scatters, at that
// clock: no two sets of ranks have the same mean.
func valueOf(rank int, clock uint64) float64 {
	return math.Sqrt(float64(2 + 7*clock + 31*uint64(rank)))
}

func weightOf(rank int, clock uint64) float64 { return float64(1 + (clock+uint64(rank))%2) }

func (a *actor) fillValue(clock uint64) {
	for i := 0; i < len(a.s.data); i += 8 {
		binary.LittleEndian.PutUint64(a.s.data[i:], math.Float64bits(valueOf(a.w.rank, clock)))
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
	o := &a.v.syncing
	if a.v.gate.op == nil {
		a.fill(a.s.Clock() + 1)
	}
	patience := ctx
	a.v.mode.fold = reduce.Mean
	if letter == 'a' {
		a.v.mode.fold = reduce.Sum
	}
	if letter != 'i' && letter != 'a' {
		patience = &explored.Patience{Context: ctx}
	}
	_, err := a.v.Sync(patience, weightOf(a.w.rank, a.s.Clock()+1))
	switch {
	case err == nil:
	case !errors.Is(err, ErrTimeout):
		return err
	case letter == 'k':
		return nil
	default:
		if err := a.v.Cancel(); err != nil || letter == 'X' {
			return err
		}
		if _, err := a.v.Gather(ctx, ""); err != nil {
			return err
		}
	}
	set, err := a.whose()
	if err != nil {
		a.t.Fail("at clock %d rank %d %v", a.s.Clock(), a.w.rank, err)
	}
	if o.average.verdict == directly || o.exchange.copied {
		if all := byte(1)<<a.w.size - 1; set != all {
			a.t.Fail("at clock %d rank %d has the mean of the set %#b, in place", a.s.Clock(), a.w.rank, set)
		}
		set |= inPlaceBit
	}
	if max(o.average.clock, o.exchange.clock) == a.s.Clock() {
		a.fold(a.s.Clock(), set)
	}
	return nil
}

// whose finds the ranks of whose arrays this rank's is the mean, or sum.
func (a *actor) whose() (set byte, err error) {
	got, err := uniform(a.s.data)
	if err != nil {
		return 0, err
	}
	for set = 1; set < 1<<a.w.size; set++ {
		want := foldOf(a.v.mode.fold, set, a.s.Clock())
		if a.s.across != nil {
			want = a.byHost(set)
		}
		if set&(1<<a.w.rank) != 0 && want == got {
			return set, nil
		}
	}
	return 0, fmt.Errorf("holds %v, the %s of no set of ranks", got, a.v.mode.fold)
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

// claims judges what the ranks' words wordDone say, dead ranks' included: until
// all have folded their parts, so many blocks of its part are folds of all arrays, in
// each of them.
func claims(all []*actor, report func(string, ...any)) {
	for _, a := range all {
		word := func(rank, i int) uint64 {
			v, _ := a.v.shared.Get(rank, i)
			return v
		}
		done := word(a.w.rank, wordDone)
		clock, blocks := done>>24, done&(1<<24-1)
		step, folded := wordStep, 2*clock
		if clock&ofCall != 0 {
			clock &^= ofCall
			step, folded = wordReduced, clock
		}
		pending := false
		for r := range all {
			pending = pending || word(r, step) < folded
		}
		if clock == 0 || !pending {
			continue
		}
		lo, hi := part(len(a.s.data), a.w.rank, a.w.size)
		op := reduce.Sum // of all calls
		if step == wordStep {
			op = reduce.Op(word(a.w.rank, wordOp))
		}
		want := foldOf(op, 1<<a.w.size-1, clock)
		for _, b := range all {
			got, err := uniform(b.s.data[lo:min(hi, lo+int(blocks)*blockBytes)])
			if err != nil || got != want {
				report("rank %d claims %d blocks of clock %d, and rank %d holds %v (%v), not %v", a.w.rank, blocks, clock, b.w.rank, got, err, want)
			}
		}
	}
}

func TestExploreInPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two ranks", false, play{"", []string{"ii", "ii"}, 0, false, nil}},
		{"two ranks, a death", false, play{"", []string{"i", "i"}, 1, false, nil}},
		{"plain stores", false, play{"", []string{"i", "i"}, 0, true, nil}},
		{"kept twice", true, play{"", []string{"kiki", "iii"}, 0, false, nil}},
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
		{"kept", false, play{"", []string{"ki", "ii"}, 0, false, nil}},
		{"barrier", false, play{"", []string{"bi", "ib"}, 0, false, nil}},
		{"kept, barrier", false, play{"", []string{"kbi", "ib"}, 0, false, nil}},
		{"closed", false, play{"", []string{"icw", "ii"}, 0, false, nil}},
		{"closed while kept", false, play{"", []string{"kcw", "i"}, 0, false, nil}},
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
