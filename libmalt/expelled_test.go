package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"malt/internal/fleet"
	"malt/internal/say"
	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// expellable is a rank that its job may go on without, though it lives.
type expellable struct {
	rdma.Viewed
	out, stuck, final, silent atomic.Bool
}

func (e *expellable) Out() error {
	if e.out.Load() {
		return say.Errorf(rdma.ErrExpelled, "the others have gone on without this rank")
	}
	return nil
}

func (e *expellable) Stuck() (why error, final bool) {
	if e.stuck.Load() {
		why = say.Errorf(rdma.ErrExpelled, "it cannot be decided").At("host 1 (rank 1) cannot be reached").Try("Look after the network.")
	}
	return why, e.final.Load()
}

func (e *expellable) Confirm(context.Context) rdma.Answer {
	return func() (bool, []int) { return !e.silent.Load(), []int{1} }
}

// expelling is rank 0 of two that have a vector, as a world of its own, and the other one.
func expelling(ctx context.Context, t *testing.T) (e *expellable, other rdma.Transport, w *libmalt.World, v *libmalt.Vector) {
	ranks := inmem.New(2)
	t.Cleanup(func() { _ = ranks[1].Close() })
	e = &expellable{Viewed: ranks[0].(rdma.Viewed)}
	made := make(chan error)
	go func() {
		w, err := libmalt.NewWorld(ctx, ranks[1], libmalt.Config{Continue: true})
		if err == nil {
			_, err = vector(ctx, w, 10, "consistency=async")
		}
		made <- err
	}()
	w, err := libmalt.NewWorld(ctx, e, libmalt.Config{Continue: true})
	if err != nil {
		t.Fatal(err)
	}
	v, err = vector(ctx, w, 10, "consistency=async")
	if err := errors.Join(err, <-made); err != nil {
		t.Fatal(err)
	}
	return e, ranks[1], w, v
}

// TestG9AnotherIsExpelledFirst: a rank that ends while votes are missing may have ended for that. The others of its
// host fail with the same error, and not with its end.
func TestG9AnotherIsExpelledFirst(t *testing.T) {
	for name, ends := range map[string]func(rdma.Transport) error{
		"leaves": rdma.Transport.Close,
		"fails":  func(t rdma.Transport) error { t.Abort(rdma.HasFailed(t.Rank(), "ExpelledError")); return nil },
	} {
		ctx := background(t)
		e, other, w, _ := expelling(ctx, t)
		e.stuck.Store(true)
		if err := ends(other); err != nil {
			t.Fatal(err)
		}
		var dead *rdma.PeerError
		if err := w.Barrier(ctx); !errors.Is(err, rdma.ErrExpelled) || errors.Is(err, libmalt.ErrTimeout) || errors.As(err, &dead) {
			t.Errorf("rank 1 %s: a barrier ends with %v", name, err)
		}
	}
}

// TestG9ExpelledRankGoesNoFurther: neither a call that waits nor one that would not succeeds. A
// wait whose time is up while it cannot be decided who takes part says so.
func TestG9ExpelledRankGoesNoFurther(t *testing.T) {
	ctx := background(t)
	e, _, w, v := expelling(ctx, t)
	if _, err := v.Sync(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Confirm(ctx); err != nil {
		t.Fatal(err)
	}
	e.silent.Store(true)
	confirm := routetest.Hold(w.Confirm)
	for range 2 { // it asks its context at the end, and goes on
		waits, _ := confirm.Step()
		if said := fmt.Sprint(waits); !errors.Is(waits, libmalt.ErrTimeout) || !strings.HasPrefix(said, "malt.confirm timed out\nwaited for rank 1 (") ||
			!strings.Contains(said, "to confirm that this rank takes part\nWrite no results") {
			t.Errorf("without an answer confirm waits for %v", waits)
		}
	}
	e.stuck.Store(true)
	lacks, _ := confirm.Step()
	if said := fmt.Sprint(lacks); !errors.Is(lacks, rdma.ErrExpelled) || !strings.HasPrefix(said, "malt.confirm timed out\nhost 1 (rank 1) cannot be reached") {
		t.Errorf("while votes are missing confirm waits for %v", lacks)
	}
	e.silent.Store(false)
	if err := confirm.Finish(ctx); err != nil {
		t.Errorf("confirm ends with %v after the answer", err)
	}
	fleet.Growing(t, func(ctx context.Context) error {
		err := w.Barrier(ctx)
		if !errors.Is(err, rdma.ErrExpelled) || !strings.Contains(fmt.Sprint(err), "timed out\nhost 1 (rank 1) cannot be reached") {
			return fmt.Errorf("while votes are missing a barrier ends with %w", err)
		}
		return nil
	})
	e.final.Store(true)
	if err := w.Barrier(ctx); !errors.Is(err, rdma.ErrExpelled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("where votes will be missing for ever a barrier ends with %v", err)
	}
	e.stuck.Store(false)
	e.final.Store(false)
	waits := make(chan error)
	go func() { waits <- w.Barrier(ctx) }()
	e.out.Store(true)
	e.Wake()
	if err := <-waits; !errors.Is(err, rdma.ErrExpelled) {
		t.Errorf("a barrier that waits ends with %v", err)
	}
	if _, err := v.Sync(ctx, 1); !errors.Is(err, rdma.ErrExpelled) {
		t.Errorf("v.sync ends with %v", err)
	}
	if _, err := v.Scatter(ctx, nil, 1); !errors.Is(err, rdma.ErrExpelled) {
		t.Errorf("v.scatter ends with %v", err)
	}
	if err := w.Confirm(ctx); !errors.Is(err, rdma.ErrExpelled) || say.Of(err).Call != "malt.confirm" {
		t.Errorf("%s ends with %v", say.Of(err).Call, err)
	}
}
