package inmem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// A box beyond the machine's memory is an error of the Begin that would need it,
// or of Publish where it does not even fit the address space.
func TestTooLarge(t *testing.T) {
	ranks := inmem.New(2)
	out, err := ranks[0].Publish(t.Context(), "large", rdma.Spec{Bytes: 1 << 44}, []int{1})
	if err != nil {
		t.Fatal(err) // nothing is reserved yet
	}
	for range 2 {
		if b, err := out.Begin(); len(b) != 0 || !errors.Is(err, rdma.ErrNoMemory) {
			t.Errorf("Begin: %d bytes, error %v; expected ErrNoMemory", len(b), err)
		}
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
}

// A job of one rank needs nobody.
func TestAlone(t *testing.T) {
	for _, n := range []int{-1, 0, 1} {
		ranks := inmem.New(n)
		if len(ranks) != 1 || ranks[0].Size() != 1 {
			t.Fatalf("New(%d) made %d ranks", n, len(ranks))
		}
		if _, err := ranks[0].Words(t.Context(), "words", 1); err != nil {
			t.Error(err)
		}
		if err := ranks[0].Close(); err != nil {
			t.Error(err)
		}
	}
}

// A rank cannot subscribe twice to one box at the same time: both would own the
// same words of it.
func TestSubscribeTwice(t *testing.T) {
	ranks := inmem.New(2)
	if _, err := ranks[0].Publish(t.Context(), "w", rdma.Spec{}, []int{1}); err != nil {
		t.Fatal(err)
	}
	in, err := ranks[1].Subscribe(t.Context(), "w", rdma.Spec{}, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ranks[1].Subscribe(t.Context(), "w", rdma.Spec{}, []int{0}); err == nil {
		t.Error("a second Inbox was made")
	}
	if err := in[0].Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ranks[1].Subscribe(ctx, "w", rdma.Spec{}, []int{0}); !errors.Is(err, context.Canceled) {
		t.Errorf("after closing: %v; expected it to wait for the next box of that name", err)
	}
}

// Words of one name by two calls of one rank at once are a mistake.
func TestWordsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := inmem.New(2)
		first := make(chan error)
		go func() { _, err := ranks[0].Words(t.Context(), "w", 1); first <- err }()
		synctest.Wait()
		if _, err := ranks[0].Words(t.Context(), "w", 1); err == nil {
			t.Error("a second call was accepted")
		}
		if _, err := ranks[1].Words(t.Context(), "w", -1); err == nil {
			t.Error("-1 words were accepted")
		}
		if _, err := ranks[1].Words(t.Context(), "w", 1); err != nil {
			t.Error(err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
