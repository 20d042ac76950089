package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// places are where an object with uneven=error is tried: in place, across hosts and
// through boxes.
var places = map[string]func(t *testing.T, n int) []rdma.Transport{
	"one host": func(t *testing.T, n int) []rdma.Transport { return open(t, n) },
	"hosts": func(_ *testing.T, n int) []rdma.Transport {
		host := make([]int, n)
		for r := range host {
			host[r] = r % 2
		}
		return inmem.NewHosts(host...)
	},
}

// TestUnevenIsAnError: the last rank makes 3 syncs, then goes; every other one that
// makes more learns it in the first sync that would go on without, and keeps its values.
func TestUnevenIsAnError(t *testing.T) {
	goes := map[string]func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error{
		"barrier": func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error { return w.Barrier(ctx) },
		"close":   func(_ context.Context, _ *libmalt.World, v *libmalt.Vector) error { return v.Close() },
		"leave":   func(context.Context, *libmalt.World, *libmalt.Vector) error { return nil },
	}
	// How many of its own syncs a rank makes that hears of 3 of another.
	for mode, most := range map[string]int{"bsp": 3, "bsp graph=ring": 3, "notify-ack": 3, "ssp:2": 5} {
		for place, transports := range places {
			for way, goAway := range goes {
				for _, n := range []int{2, 3, 4} {
					t.Run(fmt.Sprintf("%s/%s/%s/n=%d", mode, place, way, n), func(t *testing.T) {
						check(t, run(background(t), transports(t, n), func(ctx context.Context, w *libmalt.World) error {
							v, err := vector(ctx, w, acrossLength, "uneven=error consistency="+mode)
							if err != nil {
								return err
							}
							last := w.Rank() == n-1
							for made := 0; ; made++ {
								if last && made == 3 {
									return goAway(ctx, w, v)
								}
								fill(v.Bytes(), float32(w.Rank()))
								_, err := v.Sync(ctx, 1)
								if err == nil && made < most {
									continue
								}
								if err == nil {
									return fmt.Errorf("sync %d went on without the last rank", made+1)
								}
								x, torn := constant(v.Bytes())
								if x != float32(w.Rank()) || torn != nil {
									return fmt.Errorf("the values were %d and are %v (%v)", w.Rank(), x, torn)
								}
								if way == "barrier" {
									if err := w.Barrier(ctx); err != nil {
										return err
									}
								}
								return errors.Join(wantErr(err, libmalt.ErrLeft), wantText(err, "v.sync would continue without"), wantText(err, "made fewer steps"))
							}
						}))
					})
				}
			}
		}
	}
}

// TestUnevenOfEqualSteps: nobody who makes equally many steps is missed, wherever the
// others are by then.
func TestUnevenOfEqualSteps(t *testing.T) {
	for _, mode := range []string{"bsp", "notify-ack", "ssp:1", "async"} {
		for place, transports := range places {
			t.Run(mode+"/"+place, func(t *testing.T) {
				check(t, run(background(t), transports(t, 3), func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, acrossLength, "uneven=error consistency="+mode)
					if err != nil {
						return err
					}
					for i := range 60 {
						for range 1 + i%3 {
							if _, err := v.Sync(ctx, 1); err != nil {
								return err
							}
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					return nil
				}))
			})
		}
	}
}

// TestUnevenIsAgreed: ranks that differ in it are told when the vector is made.
func TestUnevenIsAgreed(t *testing.T) {
	for r, err := range jobErrors(t, 2, func(ctx context.Context, w *libmalt.World) error {
		options := ""
		if w.Rank() == 1 {
			options = "uneven=error"
		}
		_, err := vector(ctx, w, 3, options)
		return err
	}) {
		if !errors.Is(err, libmalt.ErrMismatch) && !errors.Is(err, libmalt.ErrLeft) || r == 0 && !strings.Contains(err.Error(), "uneven=error") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
