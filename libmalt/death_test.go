package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// wantDeath fails unless err names that rank as dead.
func wantDeath(err error, rank int) error {
	var dead *rdma.PeerError
	if !errors.As(err, &dead) || dead.Rank != rank {
		return fmt.Errorf("got error %v, want the death of rank %d", err, rank)
	}
	return nil
}

// TestDeathEndsWaitsForOthers: rank 0 waits for the last rank, which lives and
// does not come. Rank 1 does its part and dies; rank 0 does not wait on.
func TestDeathEndsWaitsForOthers(t *testing.T) {
	const n = 4
	type call = func(context.Context, *libmalt.World, *libmalt.Vector) error
	syncs := func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
		for range 2 { // the second scatter of notify-ack waits for an ack
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		name, options string
		call          call
	}{
		{"bsp", "consistency=bsp", syncs},
		{"ssp", "consistency=ssp:0", syncs},
		{"notify-ack", "consistency=notify-ack", syncs},
		{"ssp where the dead rank is no neighbour", "consistency=ssp:0 graph=ring", syncs},
		{"notify-ack where the dead rank is no in-neighbour", "consistency=notify-ack graph=ring", syncs},
		{"barrier", "", func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error { return w.Barrier(ctx) }},
		{"allreduce", "", func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error { return v.AllReduce(ctx, "sum") }},
		{"making", "", func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error {
			_, err := vector(ctx, w, 10, "")
			return err
		}},
		{"configure", "", func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			return v.Configure(ctx, "consistency=async")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			over := make(chan struct{})
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, c.options)
				if err != nil {
					return err
				}
				switch w.Rank() {
				case 0:
					defer close(over)
					return wantDeath(c.call(ctx, w, v), 1)
				case 1:
					// Far enough to have sent what there is to send.
					call := routetest.Hold(func(ctx context.Context) error { return c.call(ctx, w, v) })
					waits, _ := call.Step()
					if err := wantErr(waits, libmalt.ErrTimeout); err != nil {
						return err
					}
					w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
					_ = call.GiveUp()
				default:
					<-over
				}
				return nil
			})
		})
	}
}

// TestDeathLetsOthersGoOn: calls that do not wait succeed after it.
func TestDeathLetsOthersGoOn(t *testing.T) {
	died := make(chan struct{})
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=ssp:1")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
			close(died)
			return nil
		}
		<-died
		if _, err := v.Sync(ctx, 1); err != nil { // clock 1: within the slack
			return err
		}
		for range 10 {
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
		}
		_, err = v.Gather(ctx, "")
		return wantDeath(err, 1)
	})
}

// TestDeathExplainsWhoGaveUp: rank 0 gives up with half of its data sent, since
// rank 1 is dead. Rank 2, which comes later, hears of the death, not of that.
func TestDeathExplainsWhoGaveUp(t *testing.T) {
	begun, died, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		data := make([]byte, 8<<20)
		gather := func(ctx context.Context) error {
			_, err := w.AllGather(ctx, data)
			return err
		}
		switch w.Rank() {
		case 0:
			defer close(over)
			call := routetest.Hold(gather)
			waits, _ := call.Step()
			if err := wantErr(waits, libmalt.ErrTimeout); err != nil {
				return err
			}
			close(begun)
			<-died
			return wantDeath(call.Finish(ctx), 1)
		case 1:
			<-begun
			w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
			close(died)
			return nil
		}
		<-over
		return wantDeath(gather(ctx), 1)
	})
}

// TestDeathReachesEveryWait: rank 1 dies; gathers that need it fail and say so,
// those that do not wait go on.
func TestDeathReachesEveryWait(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:1", "notify-ack:1", "async"} {
		t.Run(consistency, func(t *testing.T) {
			errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency="+consistency)
				if err != nil {
					return err
				}
				for i := range 20 {
					if i == 3 && w.Rank() == 1 {
						w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
						return nil
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				return nil
			})
			for _, r := range []int{0, 2} {
				var dead *rdma.PeerError
				got := errors.As(errs[r], &dead) && dead.Rank == 1 && dead.Op == "v.sync"
				if consistency == "async" && errs[r] != nil || consistency != "async" && !got {
					t.Errorf("rank %d: %v", r, errs[r])
				}
			}
		})
	}
}

// unaware is a transport that never hears of a death: as over a network, where
// one rank may know of it seconds before another.
type unaware struct{ rdma.Transport }

func (u unaware) State(rank int) error {
	if err := u.Transport.State(rank); errors.Is(err, rdma.ErrLeft) {
		return err
	}
	return nil
}

// TestDeathIsPassedOnByMark: a call that a rank gives up because of a death, with
// its queue full, fails with that death on ranks that have not heard of it.
func TestDeathIsPassedOnByMark(t *testing.T) {
	ts := inmem.New(3)
	ts[0] = unaware{ts[0]}
	full, given, heard := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
		call := func(ctx context.Context) error {
			_, err := w.AllGather(ctx, make([]byte, 4<<20))
			return err
		}
		switch w.Rank() {
		case 0:
			defer close(heard)
			<-given
			err := call(ctx)
			return errors.Join(wantDeath(err, 2), wantText(err, "rank 1 reported it"))
		case 1:
			defer func() { close(given); <-heard }()
			gathering := routetest.Hold(call)
			waits, _ := gathering.Step()
			close(full)
			return errors.Join(wantErr(waits, libmalt.ErrTimeout), wantDeath(gathering.Finish(ctx), 2))
		}
		<-full
		w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestDeathIsPassedOnByMessage: the same where there is room for the reason. The
// rank that is taken for dead, and is not, hears of that too.
func TestDeathIsPassedOnByMessage(t *testing.T) {
	var heard sync.WaitGroup
	heard.Add(3)
	with(t, func(f *faulty) {
		f.subscribe = func(context.Context, string, rdma.Spec, []int) ([]rdma.Inbox, error) {
			return nil, &rdma.PeerError{Rank: 2, Kind: rdma.Unreachable, Err: errors.New("its host has not answered")}
		}
	}, func(ctx context.Context, w *libmalt.World) error {
		_, err := vector(ctx, w, 10, "")
		heard.Done()
		heard.Wait() // nobody leaves before
		if w.Rank() == 2 {
			return errors.Join(wantErr(err, libmalt.ErrLeft), wantText(err, "considers this rank dead: "), wantWhy(err))
		}
		return errors.Join(wantDeath(err, 2), wantText(err, "rank 2 is dead: "), wantWhy(err))
	})
}

// wantWhy checks that an error says why the rank is taken for dead. A rank that sees the mark before the
// message knows only which rank reported the death.
func wantWhy(err error) error {
	if wantText(err, "reported it and gave up") == nil {
		return nil
	}
	return wantText(err, "its host has not answered")
}

func wantText(err error, want string) error {
	if !strings.Contains(fmt.Sprint(err), want) {
		return fmt.Errorf("got error %v, want one with %q", err, want)
	}
	return nil
}
