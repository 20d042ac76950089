// What the race detector allocates is not counted.

//go:build !race

package libmalt_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"malt/libmalt"
)

// TestAllocations: no operation allocates on the Go heap, at any size; also one
// that has to wait, as long as it need not sleep. It is a guard on a count, never on
// a time. most leaves room for what the runtime does beside the calls, and for some
// of them asleep, but not for one allocation per call.
func TestAllocations(t *testing.T) {
	const calls, most = 200, 0.9
	ops := []struct {
		name, options string
		call          func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error
	}{
		{"scatter", "consistency=async", func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			_, err := v.Scatter(ctx, nil, 1)
			return err
		}},
		{"gather of nothing", "consistency=async", func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			_, err := v.Gather(ctx, "")
			return err
		}},
		{"scatter and gather", "consistency=async", func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
			_, err := v.Gather(ctx, "")
			return err
		}},
		{"sync in place", "consistency=bsp", syncOnce},
		{"sync through boxes", "consistency=bsp graph=ring", syncOnce},
		{"sync of changes", "fold=sum-changes", syncOnce},
		{"sync of two types of changes", "fold=mean-changes consistency=async", syncOnce},
		{"sync of two types in place", "consistency=bsp", syncOnce},
		{"sync of two types through boxes", "consistency=bsp graph=ring", syncOnce},
	}
	for _, op := range ops {
		for _, count := range []int{1, 1 << 16} {
			t.Run(fmt.Sprintf("%s/%d", op.name, count), func(t *testing.T) {
				var before, after runtime.MemStats
				ctx := background(t)
				for r, err := range run(ctx, shared(t, 2), func(_ context.Context, w *libmalt.World) error {
					arrays := []libmalt.Array{{DType: libmalt.Float32, Count: count}}
					if strings.Contains(op.name, "two types") {
						arrays = append(arrays, libmalt.Array{DType: libmalt.Float64, Count: count})
					}
					v, err := w.NewVector(ctx, arrays, "v", op.options)
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
				if n := float64(after.Mallocs-before.Mallocs) / (2 * calls); n > most {
					t.Errorf("%.2f allocations per call, none is expected", n)
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
