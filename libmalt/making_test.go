package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// ending is how a rank ends the making of a vector in the middle.
type ending struct {
	name  string
	end   func(w *libmalt.World, making *routetest.Held) error
	stays bool // in the job
	told  func(err error) bool
}

var endings = []ending{
	{"gives up", givesUp, true, hasLeft},
	{"leaves", func(w *libmalt.World, making *routetest.Held) error {
		return errors.Join(givesUp(w, making), w.Close())
	}, false, hasLeft},
	{"dies", func(w *libmalt.World, making *routetest.Held) error {
		w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
		return errors.Join(givesUp(w, making), w.Close())
	}, false, hasDied},
}

func givesUp(_ *libmalt.World, making *routetest.Held) error {
	return wantErr(making.GiveUp(), libmalt.ErrTimeout)
}

func hasLeft(err error) bool { return errors.Is(err, libmalt.ErrLeft) }

func hasDied(err error) bool {
	var dead *rdma.PeerError
	return errors.As(err, &dead) && dead.Rank == 0
}

// TestMakingEndsAtEveryStage: rank 0 makes a vector, or configures one, step by
// step, and after so many steps gives it up, leaves or dies. The others hear of
// it at once, or have the vector and do not wait for rank 0 in it. Afterwards
// all who are in the job make the next call together.
func TestMakingEndsAtEveryStage(t *testing.T) {
	for _, e := range endings {
		for _, options := range []string{"consistency=bsp", "consistency=ssp:1", "consistency=notify-ack graph=ring"} {
			for _, how := range []string{"made with the same values", "made with own values", "configured"} {
				t.Run(e.name+"/"+options+"/"+how, func(t *testing.T) {
					steps := 1
					for over := false; !over; steps++ {
						synctest.Test(t, func(t *testing.T) { over = endMaking(t, e, options, how, steps) })
						if t.Failed() {
							t.Fatalf("rank 0 %s after %d steps", e.name, steps)
						}
					}
					if steps < 4 {
						t.Errorf("a making of %d steps; are there stages that were not ended in?", steps)
					}
				})
			}
		}
	}
}

// endMaking returns true when rank 0 had the vector before it was to end.
func endMaking(t *testing.T, e ending, options, how string, steps int) (over bool) {
	errs := run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) (err error) {
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		var v *libmalt.Vector
		if how == "configured" {
			if v, err = vector(ctx, w, 10, "consistency=async"); err != nil {
				return err
			}
		}
		start := time.Now()
		attempt := func(ctx context.Context) (err error) {
			switch how {
			case "configured":
				return v.Configure(ctx, options)
			case "made with own values":
				v, err = vector(ctx, w, 10, options+" start=own")
			default:
				v, err = vector(ctx, w, 10, options)
			}
			return err
		}
		if w.Rank() == 0 {
			making := routetest.Hold(attempt)
			for range steps {
				waits, err := making.Step()
				if over = waits == nil && err == nil; over {
					return w.Barrier(ctx)
				}
				if err := errors.Join(err, wantErr(waits, libmalt.ErrTimeout)); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			if err := e.end(w, making); err != nil || !e.stays {
				return err
			}
			return w.Barrier(ctx)
		}
		// Rank 2 comes late: rank 1 is in the middle by then.
		time.Sleep(time.Duration(w.Rank()-1) * time.Duration(steps) * 700 * time.Millisecond)
		if err := attempt(ctx); err == nil {
			for range 3 {
				if _, err := v.Sync(ctx, 1); err != nil && !e.told(err) {
					return fmt.Errorf("sync: %w", err)
				} else if err != nil {
					break
				}
			}
		} else if !e.told(err) {
			return fmt.Errorf("got error %w", err)
		}
		if took, most := time.Since(start), time.Duration(steps)*time.Second; took > most {
			return fmt.Errorf("it took %v; rank 0 was gone after %v", took, most)
		}
		if err := w.Barrier(ctx); err != nil && (e.stays || !e.told(err)) {
			return fmt.Errorf("barrier: %w", err)
		}
		return nil
	})
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	return over
}
