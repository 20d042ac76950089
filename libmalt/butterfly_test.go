package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
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

// TestButterflyLosesARankOnTheWay: a rank ends, and leaves after its timeout, though others need it. From then on each
// sync of a rank that lacks changes therefore fails, and names both: also where it hears of that through another rank,
// 0 of 7 through 6, which has left, and 4. In virtual time it hears at the next sync, or while it waits.
func TestButterflyLosesARankOnTheWay(t *testing.T) {
	const timeout, step = time.Second / 4, 10 * time.Millisecond
	loses := func(ctx context.Context, t *testing.T, ranks []rdma.Transport, options string) (after time.Duration) {
		over, n := make(chan struct{}), len(ranks)
		check(t, run(ctx, ranks, func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, n, 0, "fold=sum-changes "+options)
			if err == nil {
				err = w.Barrier(ctx)
			}
			switch {
			case err != nil:
				return err
			case w.Rank() == n-2:
				short, stop := context.WithTimeout(ctx, timeout)
				defer stop()
				return errors.Join(v.Close(), w.Leave(short))
			case w.Rank() > 0:
				<-over
				return nil
			}
			defer close(over)
			begun := time.Now()
			for err == nil && time.Since(begun) < fleet.Patience {
				time.Sleep(step)
				array[0]++
				_, err = v.Sync(ctx, 1)
			}
			after = time.Since(begun)
			if says := fmt.Sprintf("rank %d has left, and passes on no more changes of rank %d\n", n-2, n-1); err == nil || !strings.Contains(err.Error(), says) {
				return fmt.Errorf("%v", err)
			}
			return wantErr(err, libmalt.ErrLeft)
		}))
		return after
	}
	for graph, n := range map[string]int{"butterfly:2x2": 4, "butterfly:2x2x2": 8} {
		for _, consistency := range []string{"ssp:0", "async"} {
			options := "graph=" + graph + " consistency=" + consistency
			t.Run(graph+"/"+consistency, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if after := loses(t.Context(), t, inmem.New(n), options); after < timeout || after > timeout+step {
						t.Errorf("heard after %v", after)
					}
				})
			})
			t.Run("shm/"+graph+"/"+consistency, func(t *testing.T) { loses(background(t), t, shared(t, n), options) })
			t.Run("tcp/"+graph+"/"+consistency, func(t *testing.T) { loses(background(t), t, overTCP(t, n), options) })
		}
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
