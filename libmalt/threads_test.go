package libmalt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"malt/libmalt"
)

// TestBusyCollectiveCostsNothing: one that is refused because of a gather in
// notify-ack has not begun; it is made when that is over, and no other rank has
// heard of it.
func TestBusyCollectiveCostsNothing(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=notify-ack:3")
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			_, err = v.Scatter(ctx, nil, 1)
		} else if _, err = v.Begin(ctx); err == nil {
			_, making := vector(ctx, w, 10, "")
			for _, refused := range []error{w.Barrier(ctx), making, w.AllReduce(ctx, nil, libmalt.Float32, "sum")} {
				err = errors.Join(err, wantErr(refused, libmalt.ErrBusy))
			}
			err = errors.Join(err, v.End(true))
		}
		if err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		_, err = vector(ctx, w, 10, "")
		return err
	})
}

// pause lets the other threads of this test run.
func pause() {
	for range 100 {
		runtime.Gosched()
	}
}

// TestThreads: on each rank one thread makes collective calls, one trains, one
// asks what can be asked at any time, and one configures. All of it is safe, or
// refused as busy; and a collective call afterwards levels the clocks.
func TestThreads(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:1", "async", "notify-ack:2"} {
		t.Run(consistency, func(t *testing.T) {
			for _, n := range []int{1, 2, 3} {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 100, "consistency="+consistency)
					if err != nil {
						return err
					}
					var threads sync.WaitGroup
					stop := make(chan struct{})
					errs := make([]error, 2)
					threads.Go(func() { errs[0] = train(ctx, v, stop) })
					threads.Go(func() { errs[1] = ask(v, stop) })
					err = collect(ctx, w, v)
					close(stop)
					threads.Wait() // who waits for one that has stopped is let go when that one is in the call below
					clocks, failed := w.AllGather(ctx, nil)
					if failed == nil {
						clocks, failed = w.AllGather(ctx, fmt.Append(nil, v.Clock()))
					}
					for _, clock := range clocks {
						if string(clock) != string(clocks[0]) {
							failed = fmt.Errorf("after a collective call the clocks of the ranks are %s", clocks)
						}
					}
					return errors.Join(append(errs, err, failed)...)
				})
			}
		})
	}
}

// collect makes collective calls until one is through often enough.
func collect(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
	for i := range 60 {
		var err error
		for {
			switch i % 4 {
			case 0:
				err = w.Barrier(ctx)
			case 1:
				err = v.AllReduce(ctx, "mean")
			case 2:
				err = levels(ctx, w, v)
			case 3:
				err = v.Configure(ctx, "fold="+[]string{"mean", "max"}[i/4%2])
			}
			if !errors.Is(err, libmalt.ErrBusy) {
				break
			}
			pause()
		}
		if err != nil {
			return fmt.Errorf("collective %d: %w", i, err)
		}
	}
	return nil
}

// levels is a collective call after which no clock is less than one was before it.
func levels(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
	clocks, err := w.AllGather(ctx, binary.LittleEndian.AppendUint64(nil, v.Clock()))
	for _, clock := range clocks {
		for v.Clock() < binary.LittleEndian.Uint64(clock) { // the thread that trains is inside, and raises it
			pause()
		}
	}
	return err
}

func train(ctx context.Context, v *libmalt.Vector, stop chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		pause()
		_, err := v.Sync(ctx, 1)
		if errors.Is(err, libmalt.ErrState) { // the scatter is through, its gather was refused
			_, err = v.Gather(ctx, "")
		}
		if err != nil && !errors.Is(err, libmalt.ErrBusy) && !errors.Is(err, libmalt.ErrState) {
			return fmt.Errorf("sync: %w", err)
		}
	}
}

func ask(v *libmalt.Vector, stop chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		pause()
		_, _, _, _ = v.Describe(), v.Receivers(), v.Senders(), v.Clock()
		if _, err := v.Stats(); err != nil && !errors.Is(err, libmalt.ErrBusy) {
			return err
		}
	}
}

// TestEnginesOnThreads syncs two vectors, and makes collective calls, on three threads of each rank:
// all of them wait, and each has the engines look where another rank has gone into a call, or come out.
func TestEnginesOnThreads(t *testing.T) {
	for _, options := range []string{"graph=shards consistency=ssp:0", "graph=shards:1 consistency=ssp:1", "graph=butterfly consistency=ssp:0"} {
		t.Run(options, func(t *testing.T) {
			const steps = 40
			job(t, 3, func(ctx context.Context, w *libmalt.World) error {
				errs := make(chan error, 3)
				for range 2 {
					v, err := vector(ctx, w, 100, "fold=sum-changes "+options)
					if err != nil {
						return err
					}
					go func() {
						for range steps {
							if _, err := v.Sync(ctx, 1); err != nil {
								errs <- err
								return
							}
						}
						errs <- v.Close()
					}()
				}
				go func() {
					for range steps {
						if err := w.Barrier(ctx); err != nil {
							errs <- err
							return
						}
					}
					errs <- nil
				}()
				return errors.Join(<-errs, <-errs, <-errs)
			})
		})
	}
}
