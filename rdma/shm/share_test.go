package shm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

// maltMappings counts those of MALT's memory in this process.
func maltMappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "/memfd:malt-")
}

// A Share and a box of its name are one mapping of each other rank, whichever is connected
// first, and both can be used, and closed, without the other.
func TestBoxLiesBehindShareOfItsName(t *testing.T) {
	const ranks, block, words = 3, 10_000, 2
	all := open(t, ranks)
	ctx := context.Background()
	before := maltMappings(t)
	fresh := fleet.Holdings()
	shares := make([]rdma.Shared, ranks)
	for r, tr := range all {
		var err error
		if shares[r], err = tr.Share("w", block, words); err != nil {
			t.Fatal(err)
		}
	}
	others := func(rank int) []int { return rdma.Everyone(ranks).Others(rank) }
	type connected struct {
		out rdma.Outbox
		ins []rdma.Inbox
	}
	join := func() {
		t.Helper()
		for _, s := range shares {
			if err := s.Join(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	box := func(bytes int, between func()) []connected {
		t.Helper()
		boxes := make([]connected, ranks)
		s := rdma.Spec{Bytes: bytes}
		for r, tr := range all {
			var err error
			if boxes[r].out, err = tr.Publish(ctx, "w", s, others(r)); err != nil {
				t.Fatal(err)
			}
		}
		between()
		for r, tr := range all {
			var err error
			if boxes[r].ins, err = tr.Subscribe(ctx, "w", s, others(r)); err != nil {
				t.Fatal(err)
			}
		}
		return boxes
	}
	use := func(boxes []connected, size int, clock uint64) {
		t.Helper()
		for r := range boxes {
			send(t, boxes[r].out, clock, bytes.Repeat([]byte{byte(r + 1)}, size))
		}
		for _, b := range boxes {
			for _, in := range b.ins {
				u, ok, err := in.Next()
				if err != nil || !ok || u.Clock != clock || !bytes.Equal(u.Data, bytes.Repeat([]byte{byte(in.From() + 1)}, size)) {
					t.Fatal(u.Clock, len(u.Data), ok, err)
				}
				if fault(func() { u.Data[0] = 1 }) == nil {
					t.Error("a reader could write a slot")
				}
				in.Release(u.Seq)
			}
		}
	}
	share := func(v uint64) {
		t.Helper()
		for r, s := range shares {
			for other := range ranks {
				if b := s.Bytes(other); len(b) != block {
					t.Fatalf("a block of %d bytes", len(b))
				} else if b[r] = byte(v); b[block-1] != 0 {
					t.Error("something else has written into the block")
				}
			}
			s.Set(0, v)
		}
		for _, s := range shares {
			for other := range ranks {
				if got := s.Get(other, 0); got != v {
					t.Errorf("the word of rank %d is %d", other, got)
				}
			}
		}
	}
	end := func(boxes []connected) {
		t.Helper()
		for _, b := range boxes {
			err := b.out.Close()
			for _, in := range b.ins {
				err = errors.Join(err, in.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}
	}

	// The own memory, its block for the user, and the own box; one of each other rank.
	const own = 3
	first := box(1<<20, func() {})
	join()
	if got := maltMappings(t) - before; got > ranks*(own+ranks-1) {
		t.Errorf("%d mappings; expected %d of each rank", got, own+ranks-1)
	}
	use(first, 1<<20, 1)
	share(1)
	end(first)
	share(2)

	// All have the Share: a further box has a File of its own.
	second := box(1000, func() {})
	use(second, 1000, 1)
	share(3)

	for r, s := range shares {
		own := s.Bytes(r)
		if err := errors.Join(s.Close(), all[r].Unmap(own)); err != nil {
			t.Error(err)
		}
	}
	use(second, 1000, 2)
	end(second)
	if leaks := fleet.Leaks(fresh); len(leaks) > 0 {
		t.Errorf("left: %q", leaks)
	}

	// The Share is connected first, and closed first; the box is small.
	for r, tr := range all {
		var err error
		if shares[r], err = tr.Share("w", block, words); err != nil {
			t.Fatal(err)
		}
	}
	third := box(1000, join)
	share(1)
	for r, s := range shares {
		own := s.Bytes(r)
		if err := errors.Join(s.Close(), all[r].Unmap(own)); err != nil {
			t.Error(err)
		}
	}
	use(third, 1000, 1)
	end(third)
	if leaks := fleet.Leaks(fresh); len(leaks) > 0 {
		t.Errorf("left: %q", leaks)
	}
}
