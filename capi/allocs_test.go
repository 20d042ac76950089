// What the race detector allocates is not counted.

//go:build !race

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/libmalt"
)

// call is one call of an exported function on the object of a handle. The types of C
// have no names in tests; those of the functions carry them.
type call func(handle uint64) (status int32)

func scattering[H ~uint64, R, T any, U ~uint64, N ~uint32, W ~float64, M ~int64, S any, C ~int32](f func(H, R, U, T, N, W, M, *S) C) call {
	var rows R
	var to T
	return func(h uint64) int32 { return int32(f(H(h), rows, 0, to, 0, 1, -1, nil)) }
}

func gathering[H ~uint64, F any, M ~int64, S any, C ~int32](f func(H, F, M, *S) C, fold F) call {
	return func(h uint64) int32 { return int32(f(H(h), fold, -1, nil)) }
}

func syncing[H ~uint64, R any, U ~uint64, W ~float64, M ~int64, S any, C ~int32](f func(H, R, U, W, M, *S) C) call {
	var rows R
	return func(h uint64) int32 { return int32(f(H(h), rows, 0, 1, -1, nil)) }
}

// named is a C string.
func named[H, M, S, C any, F ~*E, E ~int8](_ func(H, F, M, *S) C, name string) F {
	b := make([]E, len(name)+1)
	for i := range len(name) {
		b[i] = E(name[i])
	}
	return F(&b[0])
}

// TestAllocations: a call through the C ABI allocates nothing in Go, from the
// exported function on, as long as it need not sleep. It is a guard on a count,
// never on a time; most leaves room for what the runtime does beside the calls, and
// for some of them asleep, but not for one allocation per call.
func TestAllocations(t *testing.T) {
	const ranks, calls, most = 2, 500, 0.9
	for _, op := range []struct {
		name, options string
		call          call
	}{
		{"scatter", "consistency=async", scattering(maltGoVectorScatter)},
		{"gather of nothing", "consistency=async", gathering(maltGoVectorGather, nil)},
		{"gather with a fold", "consistency=async", gathering(maltGoVectorGather, named(maltGoVectorGather, "mean-received"))},
		{"sync in place", "", syncing(maltGoVectorSync)},
		{"sync through boxes", "graph=ring", syncing(maltGoVectorSync)},
	} {
		t.Run(op.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
			defer stop()
			store := fmt.Sprintf("local:%016x", rand.Uint64())
			var before, after runtime.MemStats
			body := func(rank int) error {
				w, err := libmalt.Join(ctx, libmalt.Config{
					Rank: rank, Size: ranks, Transport: "shm", Token: "token",
					Store: store,
				})
				if err != nil {
					return err
				}
				v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 1}}, "", op.options)
				if err != nil {
					return err
				}
				h := objects.add(kindVector, &object{exchanger: v, world: w, vector: v})
				defer objects.remove(h)
				measured := func(stats *runtime.MemStats) {
					_ = w.Barrier(ctx)
					if rank == 0 {
						runtime.ReadMemStats(stats)
					}
					_ = w.Barrier(ctx)
				}
				for i := range 2 * calls {
					if i == calls { // what is made at first use is there
						measured(&before)
					}
					if status := op.call(h); status != 0 {
						return fmt.Errorf("status %d", status)
					}
				}
				measured(&after)
				return w.Close()
			}
			var all sync.WaitGroup
			for rank := range ranks {
				all.Go(func() {
					if err := body(rank); err != nil {
						t.Errorf("rank %d: %v", rank, err)
					}
				})
			}
			all.Wait()
			if n := float64(after.Mallocs-before.Mallocs) / (ranks * calls); n > most {
				t.Errorf("%.2f allocations per call, none is expected", n)
			}
		})
	}
}
