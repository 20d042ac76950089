package libmalt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"malt/libmalt"
	"malt/libmalt/routetest"
)

// TestGatherAfterATimeout: what a sync that ran into its timeout has sent stays sent, and
// gathers fold what it would have brought, the first that finds it.
func TestGatherAfterATimeout(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:0", "notify-ack:1"} {
		gate := make(chan struct{})
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency="+consistency)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				<-gate
				_, err := v.Sync(ctx, 1)
				return err
			}
			call := v.Sync
			for range 3 {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				_, err := call(short, 1)
				stop()
				if err := wantErr(err, libmalt.ErrTimeout); err != nil {
					return err
				}
				if !strings.Contains(err.Error(), "rank 1 (") {
					return fmt.Errorf("%q does not say where rank 1 is", err)
				}
				call = func(ctx context.Context, _ float64) (int, error) { return v.Gather(ctx, "") }
			}
			close(gate)
			k, err := v.Gather(ctx, "")
			if err == nil && (k != 1 || v.Clock() != 1) {
				err = fmt.Errorf("%s: folded %d at clock %d, want 1 at 1", consistency, k, v.Clock())
			}
			return err
		})
	}
}

// TestPatientCallGoesOn: a call asks its context at the end, says what it waits for, and
// goes on where it was; other calls are refused meanwhile.
func TestPatientCallGoesOn(t *testing.T) {
	gate := make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			<-gate
			return w.Barrier(ctx)
		}
		barrier := routetest.Hold(w.Barrier)
		for range 5 {
			waits, _ := barrier.Step()
			if err := wantErr(waits, libmalt.ErrTimeout); err != nil {
				return err
			}
			if !strings.Contains(waits.Error(), "rank 1") {
				return fmt.Errorf("%q does not name rank 1", waits)
			}
			_, err := w.AllGather(ctx, nil)
			if err := wantErr(err, libmalt.ErrBusy); err != nil {
				return err
			}
		}
		close(gate)
		return barrier.Finish(ctx)
	})
}
