package libmalt_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"malt/libmalt"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// copied is a route that only this test knows. Its ranks agree as those of route/shared do;
// but each folds copies of all arrays by itself, and no rank writes into another's.
type copied struct {
	core.BoxesOnly // for what it does not need

	o      core.Boxed
	m      rdma.Shared
	bytes  int
	op     reduce.Op
	clock  uint64
	state  uint64 // 0: pending
	copies [][]byte
	taken  bool
	late   []int
}

const ( // of the decision about a sync
	committed = 1 + iota
	aborted
)

const ( // words
	stepWord     = iota // 2e-1: arrived at clock e; 2e: has copied all arrays
	opWord              // released by stepWord
	weightWord          // released by stepWord
	decisionWord = core.LineWords
	copiedWords  = 2 * core.LineWords
)

func init() {
	libmalt.AddRoute(func(v *libmalt.Vector) bool { return strings.HasPrefix(v.Name, "copied") },
		func(o core.Boxed, bytes int) (core.Route, error) {
			m, err := o.Transport().Share(o.BoxName(), bytes, copiedWords)
			return &copied{o: o, m: m, bytes: bytes, copies: make([][]byte, o.Size())}, err
		})
}

func (r *copied) Memory() []byte                 { return r.m.Bytes(r.o.Rank()) }
func (r *copied) Join(ctx context.Context) error { return r.m.Join(ctx) }
func (r *copied) Close() error                   { return r.m.Close() }
func (r *copied) Moved(int) int                  { return r.bytes }
func (r *copied) Late() []int                    { return r.late }

func (r *copied) Begin(clock uint64, op reduce.Op, weight float64) bool {
	r.op, r.clock, r.state, r.taken = op, clock, 0, false
	r.m.Put(opWord, uint64(op))
	r.m.Put(weightWord, math.Float64bits(weight))
	r.m.Set(stepWord, 2*clock-1)
	r.m.Ring()
	return true
}

func (r *copied) Step() (core.Outcome, error) {
	if r.state == 0 {
		want := r.choose()
		if want == 0 {
			return core.Underway, nil
		}
		r.settle(want)
	}
	if r.state == aborted {
		return core.UseBoxes, nil
	}
	if r.below(2 * r.clock); len(r.late) > 0 {
		return core.Underway, nil
	}
	if !r.taken {
		r.taken = true
		copy(r.Memory(), r.copies[0])
	}
	return core.Arrived, nil
}

func (r *copied) choose() uint64 {
	r.late = r.late[:0]
	if d := r.decided(r.clock); d != 0 {
		return d
	}
	if r.o.CatchUp(); r.o.Clock()+1 != r.clock {
		return aborted
	}
	for _, rank := range r.o.View().Ranks {
		if at := r.m.Get(rank, stepWord); at >= 2*r.clock-1 {
			if op := r.m.Get(rank, opWord); reduce.Op(op) != r.op {
				return aborted
			}
			continue
		}
		_, gone := r.o.Heard(rank)
		if wait, dead := r.o.Missing(rank, gone); dead != nil || !wait {
			return aborted
		}
		r.late = append(r.late, rank)
	}
	if len(r.late) > 0 {
		return 0
	}
	return committed
}

func (r *copied) below(step uint64) {
	r.late = r.late[:0]
	for _, rank := range r.o.View().Ranks {
		if at := r.m.Get(rank, stepWord); at < step {
			r.late = append(r.late, rank)
		}
	}
}

// decided is the decision at clock: the word has 2e or 2e+1, or is of another clock.
func (r *copied) decided(clock uint64) uint64 {
	switch d := r.m.Get(0, decisionWord); {
	case d < 2*clock:
		return 0
	case d == 2*clock:
		return committed
	}
	return aborted
}

func (r *copied) decide(clock, want uint64) uint64 {
	for r.decided(clock) == 0 {
		d := r.m.Get(0, decisionWord)
		if d < 2*clock {
			r.m.Swap(0, decisionWord, d, 2*clock+want-committed)
			r.m.Ring()
		}
	}
	return r.decided(clock)
}

func (r *copied) settle(want uint64) {
	if r.state != 0 {
		return
	}
	if r.state = r.decide(r.clock, want); r.state == aborted {
		return
	}
	var weights []float64
	for i, rank := range r.o.View().Ranks {
		r.copies[i] = append(r.copies[i][:0], r.m.Bytes(rank)[:r.bytes]...)
		bits := r.m.Get(rank, weightWord)
		weights = append(weights, math.Float64frombits(bits))
	}
	reduce.FoldTogether(r.op, r.o.Runs(), 0, r.copies, weights)
	r.m.Set(stepWord, 2*r.clock)
	r.m.Ring()
}

func (r *copied) Scatters(clock uint64) { r.decide(clock, aborted) }

func (r *copied) Leave() (core.Outcome, error) {
	if r.settle(aborted); r.state == committed {
		return core.Underway, nil
	}
	return core.UseBoxes, nil
}

// TestRouteOfATest: a route of this file alone passes what every route has to.
func TestRouteOfATest(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			routetest.Route{Name: "copied", Ranks: func(*testing.T) []rdma.Transport { return inmem.New(n) }, Elements: 1000, Rounds: 40}.Run(t)
		})
	}
}
