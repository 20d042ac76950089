package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// TestG5WaitsEndAtTheirTimeout: every call that waits ends at its timeout, not
// before and not after, and names the rank that it waited for. Virtual time:
// five minutes pass at once.
func TestG5WaitsEndAtTheirTimeout(t *testing.T) {
	const limit = 5 * time.Minute
	calls := map[string]func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error{
		"sync": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			_, err := v.Sync(ctx, 1)
			return err
		},
		"barrier":   func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error { return w.Barrier(ctx) },
		"allreduce": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error { return v.AllReduce(ctx, "mean") },
		"broadcast": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error { return v.Broadcast(ctx, 1) },
		"allgather": func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error {
			_, err := w.AllGather(ctx, nil)
			return err
		},
		"configure": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			return v.Configure(ctx, "consistency=async")
		},
		"making": func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error {
			_, err := vector(ctx, w, 5, "")
			return err
		},
	}
	// A scatter waits where the gather before it did not: nobody sends to rank 0.
	calls["scatter"] = calls["sync"]
	options := func(name, consistency string) string {
		if name == "scatter" {
			return "consistency=notify-ack graph=lists:1/ allow_disconnected=true"
		}
		return "consistency=" + consistency
	}
	for name, call := range calls {
		for _, consistency := range []string{"bsp", "ssp:0", "notify-ack"} {
			if name != "sync" && consistency != "bsp" {
				continue
			}
			t.Run(name+"/"+consistency, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					errs := run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, 10, options(name, consistency))
						if err != nil {
							return err
						}
						if name == "scatter" && w.Rank() == 0 {
							if _, err := v.Sync(ctx, 1); err != nil {
								return err
							}
						}
						if w.Rank() == 1 { // computes for ever
							<-release
							return nil
						}
						defer close(release)
						short, stop := context.WithTimeout(ctx, limit)
						defer stop()
						start := time.Now()
						err = call(short, w, v)
						if took := time.Since(start); took != limit {
							return fmt.Errorf("ended after %v with %v, want %v", took, err, limit)
						}
						if err := wantErr(err, libmalt.ErrTimeout); err != nil {
							return err
						}
						if !strings.Contains(err.Error(), "rank 1 (computing") {
							return fmt.Errorf("%q does not say where rank 1 is", err)
						}
						return nil
					})
					for r, err := range errs {
						if err != nil {
							t.Errorf("rank %d: %v", r, err)
						}
					}
				})
			})
		}
	}
}

// TestSlowRankInVirtualTime: with slack 2 and a rank that takes ten times as
// long, the fast one waits just so that it never folds what is older than 2
// (G7), and statistics tell for whom it waited and how long.
func TestSlowRankInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps, slack = 30, 2
		errs := run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency=ssp:2")
			if err != nil {
				return err
			}
			pace := time.Second
			if w.Rank() == 2 {
				pace = 10 * time.Second
			}
			for range steps {
				time.Sleep(pace) // the computation
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				us, err := v.Begin(ctx)
				if err != nil {
					return err
				}
				for _, u := range us {
					if u.Age > slack {
						return fmt.Errorf("G7: age %d", u.Age)
					}
				}
				if err := v.End(true); err != nil {
					return err
				}
			}
			st, err := v.Stats()
			if err != nil || w.Rank() == 2 {
				return err
			}
			if w := st.Edges[2].Waited; w < 200*time.Second || w > 300*time.Second {
				return fmt.Errorf("waited %v for rank 2, which took %v longer", w, steps*9*time.Second)
			}
			if st.WaitTime != st.Edges[2].Waited || st.Edges[1-w.Rank()].Waited > 0 && st.Edges[2].AgeMax > slack {
				return fmt.Errorf("waited %v in all, %v for rank 2", st.WaitTime, st.Edges[2].Waited)
			}
			return nil
		})
		for r, err := range errs {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// TestDeathEndsWaitsInVirtualTime: a wait for a rank that dies ends at once.
func TestDeathEndsWaitsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
			if w.Rank() == 1 {
				time.Sleep(time.Minute)
				w.Abort(rdma.HasFailed(w.Rank(), "out of luck"))
				return nil
			}
			start := time.Now()
			err := w.Barrier(ctx)
			var dead *rdma.PeerError
			if !errors.As(err, &dead) || time.Since(start) != time.Minute {
				return fmt.Errorf("after %v: %v", time.Since(start), err)
			}
			return nil
		})
		for r, err := range errs {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}
