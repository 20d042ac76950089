// What the race detector allocates is not counted.

//go:build !race

package exchange

import (
	"testing"

	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// TestExchangeAllocatesNothing, once what is made at first use is there.
func TestExchangeAllocatesNothing(t *testing.T) {
	const length = 4 * chunkBytes // two chunks of each of two segments
	ctx, ranks := t.Context(), inmem.NewHosts(0, 1)
	plan := NewPlan(length, 64, hosts[0])
	var xs [2]*Exchange
	for r := range xs {
		var err error
		if xs[r], err = Publish(ctx, ranks[r], "x", plan, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range xs {
		if err := x.Join(ctx); err != nil {
			t.Fatal(err)
		}
	}
	number := uint64(0)
	w := &adding{make([]byte, length)}
	once := func() {
		number++
		for _, x := range xs {
			x.Begin(number, rdma.Stamp{}, false)
		}
		for !xs[0].Complete() || !xs[1].Complete() {
			for _, x := range xs {
				if err := x.Step(w); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 4 {
		once()
	}
	if n := testing.AllocsPerRun(20, once); n != 0 {
		t.Errorf("%v allocations in an exchange", n)
	}
}
