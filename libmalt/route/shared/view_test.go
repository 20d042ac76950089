package shared

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// object is a vector that a route carries, of a rank in a view.
type object struct {
	core.Boxed // what this test does not need
	t          rdma.Transport
	clock      uint64
	runs       []reduce.Run
}

func (o *object) Rank() int                               { return o.t.Rank() }
func (o *object) Size() int                               { return o.t.Size() }
func (o *object) View() rdma.View                         { return o.t.(rdma.Viewed).View() }
func (o *object) Transport() rdma.Transport               { return o.t }
func (o *object) BoxName() string                         { return "w" }
func (o *object) Runs() []reduce.Run                      { return o.runs }
func (o *object) Clock() uint64                           { return o.clock }
func (o *object) CatchUp()                                {}
func (o *object) Folded(time.Duration)                    {}
func (o *object) Brought(int, []int)                      {}
func (o *object) Heard(int) (uint64, error)               { return 0, nil }
func (o *object) Awaited(int) bool                        { return false }
func (o *object) Missing(rank int, _ error) (bool, error) { return !o.Lost(rank), nil }
func (o *object) Adopt()                                  {}
func (o *object) Survives() bool                          { return true }
func (o *object) Lost(rank int) bool                      { return !o.t.(rdma.Viewed).View().Has(rank) }

// TestSmallerView: fewer ranks go on in the memory that all have mapped. Nobody maps
// anything again, no array moves, and the array of a rank that takes no part any more is
// neither read nor written.
func TestSmallerView(t *testing.T) {
	const n, elements = 4, 100
	const bytes = 8 * elements
	ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
	defer stop()
	objects, routes := make([]*object, n), make([]*Route, n)
	for r, tr := range inmem.New(n) {
		tr.(rdma.Viewed).Survive(1)
		objects[r] = &object{t: tr, runs: []reduce.Run{{Type: reduce.Float64, Bytes: bytes}}}
		var err error
		if routes[r], err = New(objects[r], bytes); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range routes {
		if err := r.Join(ctx); err != nil {
			t.Fatal(err)
		}
		r.Among([]int{0, 1, 2, 3})
	}
	fill := func(r int, x float64) {
		for i := range elements {
			binary.LittleEndian.PutUint64(routes[r].Memory()[8*i:], math.Float64bits(x))
		}
	}
	check := func(r int, x float64) {
		for i := range elements {
			if got := math.Float64frombits(binary.LittleEndian.Uint64(routes[r].Memory()[8*i:])); got != x {
				t.Fatalf("element %d of rank %d is %v, want %v", i, r, got, x)
			}
		}
	}
	average := func(clock uint64, ranks ...int) {
		var all sync.WaitGroup
		errs := make([]error, n)
		for _, r := range ranks {
			all.Go(func() {
				o := objects[r]
				routes[r].Begin(clock, reduce.Mean, 1)
				errs[r] = o.t.Wait(ctx, func() bool {
					at, err := routes[r].Step()
					return at == core.Arrived || err != nil
				})
				o.clock = clock
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for r := range n {
		fill(r, float64(r))
	}
	average(1, 0, 1, 2, 3)
	memory := make([]*byte, n)
	for r := range n {
		check(r, 1.5)
		memory[r] = &routes[r].Memory()[0]
	}
	survivors := []int{0, 2, 3}
	for r := range n {
		fill(r, float64(10*r))
	}
	inmem.Kill(objects[1].t)
	average(2, survivors...)
	for r := range n {
		want := 10.0 * 5 / 3
		if r == 1 {
			want = 10
		}
		check(r, want)
		if memory[r] != &routes[r].Memory()[0] {
			t.Errorf("the array of rank %d has moved", r)
		}
	}
}
