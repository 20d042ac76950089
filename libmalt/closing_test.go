package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
	"malt/rdma/rendezvous"
	"malt/rdma/shm"
)

// shared makes n ranks of this process over shared memory: what is touched
// after it was unmapped ends the test.
func shared(t testing.TB, n int) []rdma.Transport {
	t.Helper()
	store, ctx := fleet.NewStore(), background(t)
	all, errs := make([]rdma.Transport, n), make([]error, n)
	var ranks sync.WaitGroup
	for r := range n {
		ranks.Go(func() { all[r], errs[r] = shm.Open(ctx, rendezvous.Config{Rank: r, Size: n, Store: store}) })
	}
	ranks.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

// check fails the test for each rank's error.
func check(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// unmapped closes v and gives its memory back.
func unmapped(v *libmalt.Vector) error {
	first := &v.Bytes()[0]
	return errors.Join(v.Close(), v.World().Unmap(first))
}

// collectives on a vector, by name.
var collectives = map[string]func(ctx context.Context, v *libmalt.Vector) error{
	"allreduce": func(ctx context.Context, v *libmalt.Vector) error { return v.AllReduce(ctx, "mean") },
	"broadcast": func(ctx context.Context, v *libmalt.Vector) error { return v.Broadcast(ctx, 0) },
	"configure": func(ctx context.Context, v *libmalt.Vector) error { return v.Configure(ctx, "graph=ring") },
}

// TestGivenUpAndClosed: the memory of a vector may be gone once the collective call on it
// has timed out. Another vector of the same name, in the same call, is another one.
func TestGivenUpAndClosed(t *testing.T) {
	for name, call := range collectives {
		t.Run(name, func(t *testing.T) {
			told := make(chan struct{})
			check(t, run(background(t), shared(t, 2), func(ctx context.Context, w *libmalt.World) error {
				a, err := vector(ctx, w, 1<<20, "start=own")
				if err != nil {
					return err
				}
				b, err := vector(ctx, w, 1<<20, "start=own")
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					if err := wantErr(call(routetest.Tried(), a), libmalt.ErrTimeout); err != nil {
						return err
					}
					if err := unmapped(a); err != nil {
						return err
					}
					close(told)
				} else {
					<-told
					if err := wantErr(call(ctx, a), libmalt.ErrLeft); err != nil {
						return err
					}
				}
				return call(ctx, b)
			}))
		})
	}
}

// TestCallHoldsTheVector: while a collective call on a vector is under way, what would
// change the vector's values is refused, and when it has been given up no more.
func TestCallHoldsTheVector(t *testing.T) {
	for name, call := range collectives {
		t.Run(name, func(t *testing.T) {
			told := make(chan struct{})
			job(t, 2, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 1<<20, "start=own consistency=async")
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					<-told
					if err := call(ctx, v); !errors.Is(err, libmalt.ErrLeft) {
						return fmt.Errorf("got %v", err)
					}
					return w.Barrier(ctx)
				}
				held := routetest.Hold(func(ctx context.Context) error { return call(ctx, v) })
				waits, _ := held.Step()
				if err := wantErr(waits, libmalt.ErrTimeout); err != nil {
					return err
				}
				_, scatter := v.Scatter(ctx, nil, 1)
				_, gather := v.Gather(ctx, "")
				_, sync := v.Sync(ctx, 1)
				for _, err := range []error{scatter, gather, sync, v.Close(), w.Close()} {
					if err := wantErr(err, libmalt.ErrBusy); err != nil {
						return err
					}
				}
				if err := wantErr(held.GiveUp(), libmalt.ErrTimeout); err != nil {
					return err
				}
				close(told)
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
				return w.Barrier(ctx)
			})
		})
	}
}

// TestMemoryAfterATimeout: the world is closed after each kind of call has timed out,
// and all memory is given back.
func TestMemoryAfterATimeout(t *testing.T) {
	calls := map[string]func(ctx context.Context, v *libmalt.Vector) error{
		"sync": func(ctx context.Context, v *libmalt.Vector) error { _, err := v.Sync(ctx, 1); return err },
		"making": func(ctx context.Context, v *libmalt.Vector) error {
			_, err := vector(ctx, v.World(), 5, "")
			return err
		},
		"barrier": func(ctx context.Context, v *libmalt.Vector) error { return v.World().Barrier(ctx) },
	}
	for name, call := range collectives {
		calls[name] = call
	}
	before := fleet.Holdings()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			check(t, run(background(t), shared(t, 2), func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 1<<20, "start=own")
				if err != nil {
					return err
				}
				first := &v.Bytes()[0]
				if w.Rank() == 1 {
					<-over
				} else {
					defer close(over)
					if err := wantErr(call(routetest.Tried(), v), libmalt.ErrTimeout); err != nil {
						return err
					}
				}
				if err := errors.Join(w.Close(), w.Unmap(first)); err != nil {
					return err
				}
				// After that everything says so, and touches nothing.
				for _, err := range []error{call(ctx, v), w.Barrier(ctx), v.AllReduce(ctx, "sum")} {
					if err := wantErr(err, libmalt.ErrClosed); err != nil {
						return err
					}
				}
				_, err = v.Stats()
				_ = v.Describe()
				_, _ = v.Receivers(), v.Senders()
				return errors.Join(err, w.Close())
			}))
		})
	}
	for _, leak := range fleet.Leaks(before) {
		t.Error("left behind: ", leak)
	}
}

// TestClosedBeforeABarrier: of what a rank has sent before it closed the vector,
// and joined a collective call, the newest is folded once where updates may be
// overwritten. In notify-ack it is not there any more: its slots were used again
// while this rank was in the call.
func TestClosedBeforeABarrier(t *testing.T) {
	for _, consistency := range []string{"notify-ack:1", "notify-ack:3", "async", "ssp:5", "bsp"} {
		t.Run(consistency, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(t, run(t.Context(), inmem.New(2), func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "consistency="+consistency)
					if err != nil {
						return err
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					if w.Rank() == 1 {
						time.Sleep(time.Second) // rank 0 is in the barrier
						for range 5 {
							if _, err := v.Sync(ctx, 1); err != nil {
								return err
							}
						}
						return errors.Join(v.Close(), w.Barrier(ctx))
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					want := 0
					if consistency == "async" || consistency == "ssp:5" {
						want = 1
					}
					for range 3 {
						if k, err := v.Sync(ctx, 1); err != nil || k != want {
							return fmt.Errorf("folded %d updates of a closed vector, want %d, error %v", k, want, err)
						}
						want = 0
					}
					return nil
				}))
			})
		})
	}
}

// TestMakingsGivenUpLeaveNothing: a rank gives the making of a vector up again
// and again, at different stages; descriptors and mappings do not pile up.
func TestMakingsGivenUpLeaveNothing(t *testing.T) {
	check(t, run(background(t), shared(t, 2), func(ctx context.Context, w *libmalt.World) error {
		var before []string
		for i := range 40 {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if i == 10 { // whatever is made once has been made
				before = fleet.Holdings()
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			var v *libmalt.Vector
			err := libmalt.ErrTimeout
			if w.Rank() == 1 {
				v, err = vector(ctx, w, 10, "graph=ring")
			}
			if w.Rank() == 0 {
				making := routetest.Hold(func(ctx context.Context) (err error) { v, err = vector(ctx, w, 10, "graph=ring"); return err })
				waits := libmalt.ErrTimeout
				for steps := 1 + i%5*i; steps > 0 && waits != nil; steps-- {
					waits, err = making.Step()
				}
				if waits != nil {
					err = making.GiveUp()
				}
			}
			switch {
			case err == nil:
				err = errors.Join(v.Close(), w.Unmap(&v.Bytes()[0]))
			case w.Rank() == 0 && errors.Is(err, libmalt.ErrTimeout), errors.Is(err, libmalt.ErrLeft):
				err = nil
			}
			if err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if leaks := fleet.LeaksBeyond(before, 3); len(leaks) > 3 { // not what the other rank's last one holds
			return fmt.Errorf("%d more held, such as %s", len(leaks), leaks[0])
		}
		return w.Barrier(ctx)
	}))
}
