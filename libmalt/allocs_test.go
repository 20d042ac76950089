// What the race detector allocates is not counted.

//go:build !race

package libmalt_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"malt/libmalt"
)

// TestAllocations counts what a call of each operation allocates on the Go heap.
// It is a guard on a count, never on a time. most is what a call has been brought
// down to, at any size, and one or two for what the runtime does beside it; who
// brings it further down lowers it.
func TestAllocations(t *testing.T) {
	const calls = 200
	ops := []struct {
		name, options string
		most          float64
		call          func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error
	}{
		{"scatter", "consistency=async", 6, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			_, err := v.Scatter(ctx, nil, 1)
			return err
		}},
		{"gather of nothing", "consistency=async", 5, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			_, err := v.Gather(ctx, "")
			return err
		}},
		{"scatter and gather", "consistency=async", 11, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
			_, err := v.Gather(ctx, "")
			return err
		}},
		{"sync in place", "consistency=bsp", 15, syncOnce},
		{"sync through boxes", "consistency=bsp graph=ring", 15, syncOnce},
	}
	for _, op := range ops {
		for _, count := range []int{1, 1 << 16} {
			t.Run(fmt.Sprintf("%s/%d", op.name, count), func(t *testing.T) {
				var before, after runtime.MemStats
				ctx := background(t)
				for r, err := range run(ctx, shared(t, 2), func(_ context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, count, op.options)
					if err != nil {
						return err
					}
					for i := range 2 * calls {
						if i == calls { // what is made at first use is there
							if err := measured(ctx, w, &before); err != nil {
								return err
							}
						}
						if err := op.call(ctx, w, v); err != nil {
							return err
						}
					}
					return measured(ctx, w, &after)
				}) {
					if err != nil {
						t.Fatalf("rank %d: %v", r, err)
					}
				}
				// The barriers, and what the runtime does for itself, are some of it.
				if n := float64(after.Mallocs-before.Mallocs) / (2 * calls); n > op.most {
					t.Errorf("%.1f allocations per call, %v at most are expected", n, op.most)
				}
			})
		}
	}
}

func syncOnce(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	_, err := v.Sync(ctx, 1)
	return err
}

// measured reads the counters of the heap in rank 0 while the others wait.
func measured(ctx context.Context, w *libmalt.World, stats *runtime.MemStats) error {
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		runtime.ReadMemStats(stats)
	}
	return w.Barrier(ctx)
}
