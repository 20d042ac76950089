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

// TestAwait: a wait for an update ends with the first of them, when none can come, or when its time is
// up, and a gather then folds what there is. In virtual time.
func TestAwait(t *testing.T) {
	const limit, early, at = time.Minute, 5 * time.Second, 10 * time.Second
	barrier := func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error { return w.Barrier(ctx) }
	for _, c := range []struct {
		name   string
		does   func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error // rank 1, at that time
		after  func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error // rank 0, at the end
		took   time.Duration
		folded int
	}{
		{"an update", send, nil, at, 1},
		{"nothing", func(context.Context, *libmalt.World, *libmalt.Vector) error { time.Sleep(limit); return nil }, nil, limit, 0},
		{"the others leave", func(context.Context, *libmalt.World, *libmalt.Vector) error { return nil }, nil, at, 0},
		{"the others close it", func(_ context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			defer time.Sleep(limit)
			return v.Close()
		}, nil, at, 0},
		{"the others are in a call", barrier, barrier, at, 0},
	} {
		for _, options := range []string{
			"consistency=async", "consistency=ssp:4", "consistency=async graph=ring", "consistency=async sparse=model",
			"consistency=async sparse=gradient", "consistency=async fold=sum-changes",
		} {
			for _, ranks := range []int{2, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, options, ranks), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						check(t, run(t.Context(), inmem.New(ranks), func(ctx context.Context, w *libmalt.World) error {
							v, err := vector(ctx, w, 10, options)
							if err != nil {
								return err
							}
							switch w.Rank() {
							case 1:
								time.Sleep(at)
								return c.does(ctx, w, v)
							case 2:
								time.Sleep(early)
								if c.after != nil {
									return c.after(ctx, w, v)
								}
								return nil
							}
							begun := time.Now()
							k, err := awaited(ctx, v, limit)
							want, folds := c.took, c.folded
							if options == "consistency=async graph=ring" && ranks == 3 { // rank 2 alone sends to rank 0
								want, folds = early, 0
							}
							if took := time.Since(begun); err == nil && (took != want || k != folds) {
								err = fmt.Errorf("folded %d after %v, want %d after %v", k, took, folds, want)
							}
							s, failed := v.Stats()
							if s.Gathers != 1 || s.WaitTime != want {
								err = errors.Join(err, fmt.Errorf("counted %d gathers and %v of waiting, want 1 and %v", s.Gathers, s.WaitTime, want))
							}
							if c.after != nil {
								failed = errors.Join(failed, c.after(ctx, w, v))
							}
							return errors.Join(err, failed)
						}))
					})
				})
			}
		}
	}
}

// awaited is a gather that waits for so long.
func awaited(ctx context.Context, v *libmalt.Vector, limit time.Duration) (int, error) {
	short, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if err := v.Await(short); err != nil {
		return 0, err
	}
	return v.Gather(ctx, "")
}

// send changes v and scatters it.
func send(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	fill(v.Bytes(), float32(v.Clock()+1))
	_, err := v.Scatter(ctx, nil, 1)
	return err
}

// TestAwaitCountsEachOnce: what a gather has folded ends no later wait.
func TestAwaitCountsEachOnce(t *testing.T) {
	for _, options := range []string{"consistency=async", "consistency=async fold=mean-changes", "consistency=async sparse=model"} {
		synctest.Test(t, func(t *testing.T) {
			check(t, run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, options)
				if err != nil {
					return err
				}
				begun := time.Now()
				for i := 1; i <= 3; i++ {
					at := time.Duration(i) * time.Second
					if w.Rank() == 1 {
						time.Sleep(at - time.Since(begun))
						if err := send(ctx, w, v); err != nil {
							return err
						}
						continue
					}
					k, err := awaited(ctx, v, time.Minute)
					if err == nil && (k != 1 || time.Since(begun) != at) {
						err = fmt.Errorf("%s: folded %d after %v, want 1 after %v", options, k, time.Since(begun), at)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}

// TestAwaitLeavesNoTrace: a rank whose last call was a wait that brought nothing has left in good order.
func TestAwaitLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency=async")
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				return wantErr(w.Barrier(ctx), libmalt.ErrLeft)
			}
			short, stop := context.WithTimeout(ctx, 0)
			defer stop()
			return v.Await(short)
		}))
	})
}

// TestAwaitEnds: by a death with its error, and by its caller.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency=async graph=lists:/0/0 allow_disconnected=true")
			if err != nil {
				return err
			}
			switch w.Rank() {
			case 1:
				time.Sleep(time.Minute)
				w.Abort(rdma.HasFailed(w.Rank(), "out of luck"))
				return nil
			case 2:
				time.Sleep(2 * time.Minute)
				return nil
			}
			begun := time.Now()
			ended, stop := context.WithCancel(ctx)
			time.AfterFunc(time.Second, stop)
			err = v.Await(ended)
			if took := time.Since(begun); !errors.Is(err, context.Canceled) || took != time.Second {
				return fmt.Errorf("after %v: %v, want that the caller has ended it", took, err)
			}
			err = v.Await(ctx)
			var dead *rdma.PeerError
			if took := time.Since(begun); !errors.As(err, &dead) || dead.Rank != 1 || dead.Op != "v.gather" || took != time.Minute {
				return fmt.Errorf("after %v: %v, want the death of rank 1 in v.gather", took, err)
			}
			return nil
		}))
	})
}

// TestAwaitAlone: without senders there is nothing to wait for.
func TestAwaitAlone(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=async")
		if err == nil {
			err = v.Await(ctx)
		}
		return err
	})
}

// TestAwaitIsBusy: the object serves one call at a time.
func TestAwaitIsBusy(t *testing.T) {
	sends := make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=async")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-sends
			return send(ctx, w, v)
		}
		wait := routetest.Hold(v.Await)
		waits, _ := wait.Step()
		close(sends)
		_, busy := v.Gather(ctx, "")
		err = errors.Join(wantErr(waits, libmalt.ErrTimeout), wantErr(busy, libmalt.ErrBusy), wait.Finish(ctx))
		if k, failed := v.Gather(ctx, ""); k != 1 || failed != nil {
			err = errors.Join(err, failed, fmt.Errorf("folded %d, want 1", k))
		}
		return err
	})
}

// TestAwaitIsRefused where a gather waits by itself, and where there are no boxes.
func TestAwaitIsRefused(t *testing.T) {
	for _, options := range []string{
		"consistency=bsp", "consistency=notify-ack", "consistency=async graph=butterfly fold=sum-changes",
		"consistency=async graph=shards fold=sum-changes",
	} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, options)
			if err == nil {
				err = wantErr(v.Await(ctx), libmalt.ErrUnsupported)
			}
			return err
		})
	}
}
