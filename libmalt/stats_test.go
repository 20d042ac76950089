package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/rdma/rdmatest/inmem"
)

// TestOverwrittenIsExact: all updates that are never folded are counted, once,
// also those that go unseen when the vector is configured or closed.
func TestOverwrittenIsExact(t *testing.T) {
	for _, consistency := range []string{"async", "ssp:100"} {
		for _, asked := range []bool{true, false} { // also in between: asking must change nothing
			step := make(chan struct{})
			job(t, 2, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency="+consistency)
				if err != nil {
					return err
				}
				// meet keeps the ranks in step, without a message of theirs.
				meet := func() error {
					receive, send := step, step
					if w.Rank() == 0 {
						receive = nil
					} else {
						send = nil
					}
					select {
					case <-receive:
					case send <- struct{}{}:
					case <-ctx.Done():
					}
					return ctx.Err()
				}
				scatter := func(n int) (err error) {
					for ; w.Rank() == 0 && n > 0 && err == nil; n-- {
						_, err = v.Scatter(ctx, nil, 1)
					}
					return err
				}
				want := uint64(0)
				lost := func(more uint64) error {
					if want += more; w.Rank() == 0 || !asked {
						return nil
					}
					st, err := v.Stats()
					if got := st.Edges[0].Overwritten; err == nil && got != want {
						err = fmt.Errorf("%s: %d overwritten, want %d", consistency, got, want)
					}
					return err
				}
				gather := func() error {
					if w.Rank() == 0 {
						return nil
					}
					_, err := v.Gather(ctx, "")
					return err
				}
				for range 3 {
					for _, do := range []func() error{
						func() error { return scatter(5) },
						func() error { return lost(4) }, // the last can still be folded
						func() error { return v.Broadcast(ctx, 0) },
						func() error { return lost(1) },
						func() error { return scatter(4) },
						gather,
						func() error { return lost(3) },
						func() error { return scatter(2) },
						func() error { return v.Configure(ctx, "fold=mean") },
						func() error { return lost(2) },
					} {
						if err := errors.Join(do(), meet()); err != nil {
							return err
						}
					}
				}
				if err := errors.Join(scatter(3), meet(), v.Close()); err != nil {
					return err
				}
				st, err := v.Stats()
				if e := st.Edges[0]; w.Rank() == 1 && (err != nil || e.Overwritten != 33 || e.FoldedMessages != 3) {
					return fmt.Errorf("%s: %d overwritten and %d folded of 36, %v", consistency, e.Overwritten, e.FoldedMessages, err)
				}
				return w.Barrier(ctx)
			})
		}
	}
}

// TestWaitedIsInsideCalls: what passes between a timeout and the next call is not waiting.
func TestWaitedIsInsideCalls(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:0", "notify-ack"} {
		synctest.Test(t, func(t *testing.T) {
			check(t, run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency="+consistency)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					time.Sleep(time.Hour)
					_, err = v.Sync(ctx, 1)
					return err
				}
				gather := func(ctx context.Context) error { _, err := v.Gather(ctx, ""); return err }
				call := func(ctx context.Context) error { _, err := v.Sync(ctx, 1); return err }
				for range 2 {
					short, stop := context.WithTimeout(ctx, time.Minute)
					err := call(short)
					call = gather
					stop()
					if err := wantErr(err, libmalt.ErrTimeout); err != nil {
						return err
					}
					time.Sleep(10 * time.Minute)
				}
				if err := gather(ctx); err != nil { // 38 minutes more
					return err
				}
				st, err := v.Stats()
				if err == nil && (st.WaitTime != 40*time.Minute || st.Edges[1].Waited != 40*time.Minute) {
					err = fmt.Errorf("%s: waited %v, %v for rank 1, want 40 minutes", consistency, st.WaitTime, st.Edges[1].Waited)
				}
				return err
			}))
		})
	}
}
