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

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

const lineOf = 8 // elements of a cache line

// TestShardsBesideASlowRank: in async the changes of the others come, whether or not a rank syncs,
// be it the keeper: within the time of two pushes. In virtual time.
func TestShardsBesideASlowRank(t *testing.T) {
	const steps, behind = 20, 2
	for _, c := range []struct {
		name, graph string
		slow        int
		others      [2]int
	}{{"shards:1", "shards:1", 2, [2]int{0, 1}}, {"shards:1, the keeper", "shards:1", 0, [2]int{1, 2}}, {"shards", "shards", 1, [2]int{0, 2}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(t, run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
					v, array, err := numbers(ctx, w, 3*lineOf, 0, "fold=sum-changes consistency=async graph="+c.graph)
					if err != nil {
						return err
					}
					if w.Rank() == c.slow {
						time.Sleep(steps * time.Second)
						return nil
					}
					other := c.others[0] + c.others[1] - w.Rank()
					for at := 1; at <= steps; at++ {
						time.Sleep(time.Second)
						for line := range 3 {
							array[line*lineOf+w.Rank()]++
						}
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
						for line := range 3 {
							if x := array[line*lineOf+other]; int(x) < at-behind {
								return fmt.Errorf("at clock %d there are %v changes of rank %d", at, x, other)
							}
						}
					}
					return nil
				}))
			})
		})
	}
}

// TestShardsWhoseKeeperGoesAway: a keeper that goes into a collective call, and has been waited for
// before, publishes its part; in it there may be all that the others wait for. In virtual time.
func TestShardsWhoseKeeperGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, 1, 0, "fold=sum-changes consistency=ssp:0 graph=shards:1")
			if err != nil {
				return err
			}
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if w.Rank() == 0 {
				time.Sleep(time.Second)
				return v.AllReduce(short, "sum-changes")
			}
			array[0]++
			if _, err := v.Sync(short, 1); err != nil {
				return err
			}
			return v.AllReduce(short, "sum-changes")
		}))
	})
}

// TestShardsServe: a keeper that closes the vector, or leaves the job, goes on until the others
// have closed it, too, and the last changes of any rank that does arrive.
func TestShardsServe(t *testing.T) {
	const n, steps = 4, 30
	for _, early := range []string{"close", "leave"} {
		t.Run(early, func(t *testing.T) {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, array, err := numbers(ctx, w, n*lineOf, 0, "fold=sum-changes graph=shards:2 consistency=ssp:0")
				if err != nil {
					return err
				}
				last := func(rank int) int {
					if rank == 1 || rank == 2 { // one keeps a part
						return 1 + rank
					}
					return steps
				}
				for c := 1; c <= last(w.Rank()); c++ {
					for line := range n {
						array[line*lineOf+w.Rank()]++
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					for line := range n {
						for r, x := range array[line*lineOf:][:n] {
							if least := min(c, last(r)); int(x) < least {
								return fmt.Errorf("after sync %d there are %v changes of rank %d in line %d", c, x, r, line)
							}
						}
					}
				}
				if early == "close" {
					if err := v.Close(); err != nil {
						return err
					}
				}
				return w.Close()
			})
		})
	}
}

// TestShardsLoseTheirKeeper: the death of a rank that keeps a part, or passes it on to others through
// others, ends the job, also where nobody waits.
func TestShardsLoseTheirKeeper(t *testing.T) {
	for _, c := range []struct {
		consistency, graph string
		dies               int
		last               int // who hears of it through the others
		says               string
	}{
		{"ssp:2", "shards:1", 0, 1, "a part of the vector is lost with it"},
		{"async", "shards:1", 0, 2, "a part of the vector is lost with it"},
		{"async", "shards:1/1", 1, 3, "it passed on a part of the vector"}, // 0 to 1 to 2 to 3
	} {
		t.Run(c.consistency+", "+c.graph, func(t *testing.T) {
			var gone atomic.Bool
			heard := make(chan struct{}) // the others stay until then
			errs := jobErrors(t, 4, func(ctx context.Context, w *libmalt.World) error {
				v, _, err := numbers(ctx, w, 3*lineOf, 0, "fold=sum-changes graph="+c.graph+" consistency="+c.consistency)
				if err != nil {
					return err
				}
				if w.Rank() == c.last {
					defer close(heard)
				}
				for after := false; !after; {
					after = gone.Load()
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					if w.Rank() == c.dies && v.Clock() == 3 {
						w.Abort(rdma.HasFailed(c.dies, "of this test"))
						gone.Store(true)
						break
					}
				}
				if w.Rank() != c.last {
					<-heard
					return nil
				}
				return errors.New("did not hear of it")
			})
			if err := errs[c.last]; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("rank %d: %v", c.last, err)
			}
		})
	}
}

// TestG5ShardsNameTheLate: an error names the rank that has not come, and none whose changes wait
// for it at the keeper. In virtual time.
func TestG5ShardsNameTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(4), func(ctx context.Context, w *libmalt.World) error {
			v, _, err := numbers(ctx, w, 4*lineOf, 0, "fold=sum-changes graph=shards:1 consistency=ssp:0")
			if err != nil {
				return err
			}
			if w.Rank() == 2 {
				time.Sleep(2 * time.Minute)
			}
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			_, err = v.Sync(short, 1)
			time.Sleep(time.Minute) // all have their error before one leaves because of it
			if w.Rank() == 2 {
				return nil
			}
			if err := wantErr(err, libmalt.ErrTimeout); err != nil {
				return err
			}
			if text := err.Error(); !strings.Contains(text, "rank 2") || strings.Contains(text, "rank 0 (") || strings.Contains(text, "rank 1 (") || strings.Contains(text, "rank 3 (") {
				return fmt.Errorf("it does not name rank 2 alone: %s", text)
			}
			return nil
		}))
	})
}
