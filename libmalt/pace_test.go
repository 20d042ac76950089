package libmalt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/rdma/rdmatest/inmem"
)

// TestG12NoSyncWaitsLongerThanItsSlack: with a network that takes no time, a sync returns at the very
// moment at which every rank has come within the slack, whichever graph the changes take.
// Stragglers come and go. In virtual time.
func TestG12NoSyncWaitsLongerThanItsSlack(t *testing.T) {
	const ranks, steps = 6, 60
	var paces [ranks][steps]time.Duration
	draw := rand.New(rand.NewPCG(1, 1))
	for r := range paces {
		for c := range paces[r] {
			paces[r][c] = 10*time.Millisecond + time.Duration(draw.IntN(1000)) // no two ranks at one moment
			if draw.IntN(20) == 0 {
				paces[r][c] *= 4
			}
		}
	}
	for _, slack := range []int{0, 2, 4} {
		var came, left [ranks][steps]time.Duration // at a sync, and from it
		for c := range steps {
			for r := range ranks {
				came[r][c] = paces[r][c]
				if c > 0 {
					came[r][c] += left[r][c-1]
				}
			}
			for r := range ranks {
				left[r][c] = came[r][c]
				for other := range ranks {
					if c >= slack {
						left[r][c] = max(left[r][c], came[other][c-slack])
					}
				}
			}
		}
		for _, graph := range []string{"all", "butterfly", "shards", "shards:1"} {
			t.Run(fmt.Sprintf("%s/%d", graph, slack), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					check(t, run(t.Context(), inmem.New(ranks), func(ctx context.Context, w *libmalt.World) error {
						v, array, err := numbers(ctx, w, ranks*lineOf, 0, fmt.Sprintf("fold=sum-changes graph=%s consistency=ssp:%d", graph, slack))
						if err != nil {
							return err
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						begun := time.Now()
						for c, pace := range paces[w.Rank()] {
							time.Sleep(pace)
							array[lineOf*w.Rank()]++
							if _, err := v.Sync(ctx, 1); err != nil {
								return err
							}
							if at, want := time.Since(begun), left[w.Rank()][c]; at != want {
								return fmt.Errorf("sync %d returned at %v, want %v", c+1, at, want)
							}
						}
						return nil
					}))
				})
			})
		}
	}
}
