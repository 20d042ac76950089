package libmalt_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"malt/libmalt"
	"malt/rdma/rdmatest/inmem"
)

// TestWhatTheDeadLeftCountsAsSeen: after a call that makes all seen, nobody folds what a rank
// had sent that died before it.
func TestWhatTheDeadLeftCountsAsSeen(t *testing.T) {
	barrier := func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error { return w.Barrier(ctx) }
	allReduce := func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error { return v.AllReduce(ctx, "max") }
	for _, c := range []struct {
		consistency string
		call        func(context.Context, *libmalt.World, *libmalt.Vector) error
	}{{"async", allReduce}, {"ssp:1", allReduce}, {"bsp", allReduce}, {"notify-ack:3", barrier}} {
		t.Run(c.consistency, func(t *testing.T) {
			survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency="+c.consistency)
				if err != nil {
					return err
				}
				if w.Rank() == 2 {
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					return errKilled
				}
				if err := c.call(ctx, w, v); err != nil {
					return err
				}
				if got := w.Alive(); !slices.Equal(got, []int{0, 1}) {
					return fmt.Errorf("the call was made among ranks %v", got)
				}
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				us, err := v.Begin(ctx)
				for _, u := range us {
					if u.Rank == 2 {
						err = fmt.Errorf("clock %d of rank 2 is folded", u.Clock)
					}
				}
				if end := v.End(true); err == nil {
					err = end
				}
				return err
			})
		})
	}
}

// TestDeathOfOneThatRanAhead: while others are in a barrier a rank goes on without their
// acknowledgements. So the updates in its queue then are not those that they had yet to read.
func TestDeathOfOneThatRanAhead(t *testing.T) {
	survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=notify-ack")
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			for range 4 {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
			return errKilled
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		for range 3 {
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestQueueKeepsItsEdges: in notify-ack the survivors have the edges that they had, and say so.
func TestQueueKeepsItsEdges(t *testing.T) {
	for _, graph := range []string{"ring", "one-peer", "hypercube", "star", "lists:1,3/2/3/0"} {
		t.Run(graph, func(t *testing.T) {
			survivors(t, 4, 1, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency=notify-ack allow_disconnected=true graph="+graph)
				if err != nil {
					return err
				}
				if w.Rank() == 3 {
					return errKilled
				}
				for w.Generation() == 1 {
					if err := w.Barrier(ctx); err != nil {
						return err
					}
				}
				for range 6 {
					to := v.Receivers()
					if slices.Contains(to, 3) {
						return fmt.Errorf("receivers %v", to)
					}
					if _, err := v.Scatter(ctx, to, 1); err != nil {
						return fmt.Errorf("to %v: %w", to, err)
					}
					if _, err := v.Gather(ctx, ""); err != nil {
						return err
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestNamedReceiversAtADeath: a scatter to receivers that a rank has asked for just before
// succeeds, though the graph is another one now; to one that has died it fails.
func TestNamedReceiversAtADeath(t *testing.T) {
	const n, dies = 8, 7
	ctx, dead := background(t), make(chan struct{})
	var all sync.WaitGroup
	for r, tr := range inmem.New(n) {
		all.Go(func() {
			err := func() error {
				w, err := libmalt.NewWorld(ctx, tr, libmalt.Config{Continue: true})
				if err != nil {
					return err
				}
				v, err := vector(ctx, w, 10, "graph=hypercube consistency=ssp:9")
				if err != nil {
					return err
				}
				if r == dies {
					inmem.Kill(tr)
					close(dead)
					return nil
				}
				<-dead
				to := v.Receivers()
				_, err = v.Scatter(ctx, to, 1)
				if slices.Contains(to, dies) {
					if err := wantDeath(err, dies); err != nil {
						return err
					}
				} else if err != nil {
					return fmt.Errorf("to %v: %w", to, err)
				}
				if got := w.Alive(); len(got) != n-1 {
					return fmt.Errorf("the scatter has adopted ranks %v", got)
				}
				return w.Close()
			}()
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
}
