package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"malt/libmalt"
)

// TestUnevenShardsDoNotHang is the join rule: rank r syncs r+1 times, then all
// meet in an allreduce, and once more after that.
func TestUnevenShardsDoNotHang(t *testing.T) {
	for _, consistency := range []string{"bsp", "async", "ssp:0", "ssp:2", "notify-ack:1", "notify-ack:3"} {
		for _, graph := range []string{"all", "halton", "ring", "one-peer"} {
			t.Run(consistency+"/"+graph, func(t *testing.T) {
				eachSize(t, func(t *testing.T, n int) {
					job(t, n, func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, 100, "consistency="+consistency+" graph="+graph)
						if err != nil {
							return err
						}
						for round := range 3 {
							for range 3 * ((w.Rank()+round)%n + 1) {
								fill(v.Bytes(), float32(w.Rank()))
								if _, err := v.Sync(ctx, 1); err != nil {
									return err
								}
								if _, err := constant(v.Bytes()); err != nil {
									return err
								}
							}
							fill(v.Bytes(), float32(w.Rank()))
							if err := v.AllReduce(ctx, "mean"); err != nil {
								return err
							}
							if got, want := at(v.Bytes(), 50), float32(n-1)/2; got != want {
								return fmt.Errorf("after the allreduce: %v, want %v", got, want)
							}
							if got, want := v.Clock(), uint64(3*n*(round+1)); got != want {
								return fmt.Errorf("round %d: clock %d after levelling, want %d", round, got, want)
							}
						}
						return nil
					})
				})
			})
		}
	}
}

// TestEndingRanksAreNotWaitedFor: rank r leaves the job after r+1 syncs.
func TestEndingRanksAreNotWaitedFor(t *testing.T) {
	for _, consistency := range []string{"bsp", "async", "ssp:1", "notify-ack:1", "notify-ack:2"} {
		t.Run(consistency, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "consistency="+consistency)
					for i := 0; i <= 2*w.Rank() && err == nil; i++ {
						_, err = v.Sync(ctx, 1)
					}
					return err
				})
			})
		})
	}
}

// TestClosingRanksAreNotWaitedFor: rank r closes the vector after r+1 syncs and
// stays in the job until all are through.
func TestClosingRanksAreNotWaitedFor(t *testing.T) {
	for _, options := range []string{"consistency=bsp graph=ring", "consistency=bsp", "consistency=ssp:1", "consistency=notify-ack:1"} {
		t.Run(options, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, options)
					for i := 0; i <= 2*w.Rank() && err == nil; i++ {
						_, err = v.Sync(ctx, 1)
					}
					if err != nil {
						return err
					}
					return errors.Join(v.Close(), w.Barrier(ctx))
				})
			})
		})
	}
}

// TestScatterBarrierGather, the classic of one-sided programs: what was scattered
// before a barrier is there after it. In notify-ack it is not, and the gather says
// so in place of waiting for what will never come.
func TestScatterBarrierGather(t *testing.T) {
	for _, consistency := range []string{"async", "ssp:1", "bsp", "notify-ack:1"} {
		t.Run(consistency, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "start=own consistency="+consistency)
					if err != nil {
						return err
					}
					for range 3 {
						fill(v.Bytes(), float32(w.Rank()))
						if _, err := v.Scatter(ctx, nil, 1); err != nil {
							return err
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						k, err := v.Gather(ctx, "")
						if consistency == "notify-ack:1" {
							if err := wantErr(err, libmalt.ErrState); err != nil {
								return err
							}
							continue
						}
						if err != nil {
							return err
						}
						if got := at(v.Bytes(), 3); k != n-1 || got != float32(n-1)/2 {
							return fmt.Errorf("folded %d to %v, want %d to %v", k, got, n-1, float32(n-1)/2)
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					// The values of an allreduce are newer than anything sent before.
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					if err := v.AllReduce(ctx, "mean"); err != nil {
						return err
					}
					if consistency == "async" {
						if k, err := v.Gather(ctx, ""); k != 0 || err != nil {
							return fmt.Errorf("after an allreduce: folded %d, %v", k, err)
						}
					}
					return nil
				})
			})
		})
	}
}

// TestUnevenScatterBarrierGather: ranks come to the barrier at different clocks;
// in bsp the gather after it folds those of the clock that they were levelled to.
func TestUnevenScatterBarrierGather(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "start=own graph=ring")
		if err != nil {
			return err
		}
		for range 2 * w.Rank() {
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		fill(v.Bytes(), float32(w.Rank()))
		if _, err := v.Scatter(ctx, nil, 1); err != nil { // clocks 1, 3, 5
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		k, err := v.Gather(ctx, "")
		if err != nil || v.Clock() != 5 || k != []int{1, 0, 0}[w.Rank()] { // rank 0 hears from rank 2
			return fmt.Errorf("folded %d at clock %d: %w", k, v.Clock(), err)
		}
		k, err = v.Sync(ctx, 1)
		if err != nil || v.Clock() != 6 || k != 1 {
			return fmt.Errorf("then folded %d at clock %d: %w", k, v.Clock(), err)
		}
		return w.Barrier(ctx)
	})
}
