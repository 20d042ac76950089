package libmalt_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"malt/libmalt"
)

// TestButterflyServes: a rank that closes the vector, or leaves the job, passes on what others
// send until they have closed it, too: 0 hears of 3 through 2, and 3 of 0 through 1.
func TestButterflyServes(t *testing.T) {
	const n, steps = 4, 30
	for _, early := range []string{"close", "leave"} {
		t.Run(early, func(t *testing.T) {
			var closed [n]atomic.Bool
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, array, err := numbers(ctx, w, n, 0, "fold=sum-changes graph=butterfly:2x2 consistency=ssp:0")
				if err != nil {
					return err
				}
				last := func(rank int) int {
					if rank == 1 || rank == 2 {
						return 1 + rank
					}
					return steps
				}
				for c := 1; c <= last(w.Rank()); c++ {
					array[w.Rank()]++
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					for r, x := range array {
						if least := min(c, last(r)); int(x) < least {
							return fmt.Errorf("after sync %d there are %v changes of rank %d", c, x, r)
						}
					}
				}
				closed[w.Rank()].Store(true)
				if early == "close" {
					if err := v.Close(); err != nil {
						return err
					}
				}
				err = w.Close()
				if from := w.Rank() ^ 1; err == nil && !closed[from].Load() && last(w.Rank()) < steps {
					err = fmt.Errorf("it has left before rank %d was done, whose changes it passes on", from)
				}
				return err
			})
		})
	}
}

// TestButterflyIsRefused: where the job goes on when ranks die.
func TestButterflyIsRefused(t *testing.T) {
	survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
		_, err := vector(ctx, w, 3, "fold=sum-changes graph=butterfly consistency=async")
		if err == nil || !strings.Contains(err.Error(), "on_death=stop") {
			return fmt.Errorf("%v", err)
		}
		if w.Rank() == 1 {
			return errKilled
		}
		return nil
	})
}
