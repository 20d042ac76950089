package inmem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// In a bubble time passes only when all are durably blocked: so an hour's
// timeout ends at once, at exactly an hour, and nothing polled meanwhile.
func TestVirtualTime(t *testing.T) {
	for what, wait := range map[string]func(ctx context.Context, t rdma.Transport) error{
		"Wait": func(ctx context.Context, t rdma.Transport) error { return t.Wait(ctx, func() bool { return false }) },
		"Words": func(ctx context.Context, t rdma.Transport) error {
			_, err := t.Words(ctx, "words", 1)
			return err
		},
		"Subscribe": func(ctx context.Context, t rdma.Transport) error {
			_, err := t.Subscribe(ctx, "box", rdma.Spec{}, []int{1})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := inmem.New(2)
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := wait(ctx, ranks[0])
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			})
		})
	}
}

// A wait runs its step once, and then once per ring; synctest.Wait returns when
// it sleeps.
func TestStepsPerRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := inmem.New(1)[0]
		runs, stop := 0, false
		done := make(chan error)
		go func() {
			done <- tr.Wait(t.Context(), func() bool { runs++; return stop })
		}()
		synctest.Wait()
		for i := 1; i <= 5; i++ {
			if runs != i {
				t.Fatalf("%d runs after %d rings", runs, i-1)
			}
			stop = i == 5
			tr.Wake()
			synctest.Wait()
		}
		if err := <-done; err != nil || runs != 6 {
			t.Errorf("%d runs, error %v", runs, err)
		}
	})
}

// Closing a transport ends the waits on it.
func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := inmem.New(2)
		errs := make(chan error)
		go func() { errs <- ranks[0].Wait(t.Context(), func() bool { return false }) }()
		go func() { _, err := ranks[0].Words(t.Context(), "words", 1); errs <- err }()
		go func() { _, err := ranks[0].Subscribe(t.Context(), "box", rdma.Spec{}, []int{1}); errs <- err }()
		synctest.Wait()
		if err := ranks[0].Close(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, rdma.ErrClosed) && !errors.Is(err, rdma.ErrLeft) {
				t.Errorf("a wait on a closed transport: %v", err)
			}
		}
	})
}
