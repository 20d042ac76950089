package libmalt_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/inmem"
)

// TestButterfly: each rank adds 1 to its own element before each sync.
func TestButterfly(t *testing.T) {
	for _, ranks := range []struct {
		name string
		make func(t *testing.T, n int) []rdma.Transport
	}{
		{"inmem", func(_ *testing.T, n int) []rdma.Transport { return inmem.New(n) }},
		{"shm", func(t *testing.T, n int) []rdma.Transport { return shared(t, n) }},
		{"tcp", func(t *testing.T, n int) []rdma.Transport { return overTCP(t, n) }},
	} {
		for _, slack := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, ssp:%d", ranks.name, slack), func(t *testing.T) {
				routetest.Engine{
					Ranks: ranks.make,
					Make: func(ctx context.Context, w *libmalt.World) (*libmalt.Vector, error) {
						v, _, err := numbers(ctx, w, w.Size(), 0, fmt.Sprintf("fold=sum-changes graph=butterfly consistency=ssp:%d", slack))
						return v, err
					},
					Change: func(v *libmalt.Vector, _ int) {
						r := v.World().Rank()
						setElement(v.Array(0), r, element(v.Array(0), r)+1)
					},
					Check: func(v *libmalt.Vector, clock int, _ bool) error {
						for r := range v.World().Size() {
							x, least := int(element(v.Array(0), r)), clock-slack
							if x < least || r == v.World().Rank() && x != clock {
								return fmt.Errorf("after sync %d there are %d changes of rank %d", clock, x, r)
							}
						}
						return nil
					},
				}.Run(t)
			})
		}
	}
}

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
