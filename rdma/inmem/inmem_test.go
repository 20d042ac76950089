package inmem_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"malt/rdma"
	"malt/rdma/inmem"
)

func pair(t *testing.T, s rdma.Spec) (ts []rdma.Transport, out rdma.Outbox, in rdma.Inbox) {
	t.Helper()
	ts = inmem.New(2)
	out, err := ts[0].Publish(context.Background(), "w", s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	ins, err := ts[1].Subscribe(context.Background(), "w", s, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	return ts, out, ins[0]
}

func send(t *testing.T, out rdma.Outbox, clock uint64, payload string) {
	t.Helper()
	b, err := out.Begin()
	if err != nil || b == nil {
		t.Fatalf("Begin: %v, %v", b, err)
	}
	if err := out.Commit(copy(b, payload), rdma.Stamp{Clock: clock, Weight: 1}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestNewestReplaces(t *testing.T) {
	_, out, in := pair(t, rdma.Spec{Bytes: 8})
	send(t, out, 1, "one")
	send(t, out, 2, "two")
	u, ok, err := in.Next()
	if err != nil || !ok || !bytes.Equal(u.Data, []byte("two")) || u.Clock != 2 || u.Seq != 2 {
		t.Fatalf("got %+v, %v, %v", u, ok, err)
	}
	if _, ok, err := in.Next(); ok || err != nil {
		t.Fatalf("again: %v, %v", ok, err)
	}
	in.Release(u.Seq)
	if a := out.Acked(1); a != 2 {
		t.Fatalf("acked %d", a)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := in.Clock(); c != 2 || !errors.Is(err, rdma.ErrLeft) {
		t.Fatalf("clock %d, %v", c, err)
	}
}

func TestQueueWaits(t *testing.T) {
	_, out, in := pair(t, rdma.Spec{Bytes: 8, Depth: 1})
	send(t, out, 1, "one")
	if b, err := out.Begin(); b != nil || err != nil {
		t.Fatalf("Begin on a full queue: %v, %v", b, err)
	}
	u, ok, err := in.Next()
	if !ok || err != nil || string(u.Data) != "one" {
		t.Fatalf("got %+v, %v, %v", u, ok, err)
	}
	in.Release(u.Seq)
	send(t, out, 2, "two")
}
