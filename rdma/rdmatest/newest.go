package rdmatest

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"

	"malt/rdma"
)

var newestCases = []testCase{
	{"begin and commit", 2, beginCommit},
	{"G2 newest replaces", 2, newestReplaces},
	{"newest of each length", 2, newestLengths},
	{"newest to some", 2, newestSubset},
	{"G3 pin holds across overwrites", 2, pinHolds},
	{"G4 sender never waits", 2, senderNeverWaits},
	{"acked and skipped", 2, ackedNewest},
	{"clock and advance", 2, clockAdvance},
	{"header travels", 2, headerTravels},
	{"what was begun can be read until the next Begin", 2, begunStays},
}

// begunStays: what the sender has written stays before it, committed, read and released.
func begunStays(j *job) {
	for name, s := range map[string]rdma.Spec{
		"newest":    {Bytes: 3000},
		"lock-step": {Bytes: 3000, Mode: rdma.ByClock},
		"queue":     {Bytes: 3000, Mode: rdma.Queue(2)},
	} {
		out := j.publish(0, name, s, j.others(0)...)
		in := map[int]rdma.Inbox{}
		for _, r := range j.others(0) {
			in[r] = j.subscribe(r, name, s, 0)
		}
		for c := uint64(1); c <= 10; c++ {
			b, err := out.Begin()
			if err != nil || b == nil {
				j.Fatalf("%s: Begin: %d bytes, %v", name, len(b), err)
			}
			pattern(b, 0, c)
			want := slices.Clone(b)
			if err := errors.Join(out.Commit(len(b), stamp(0, c), nil), out.Advance(c)); err != nil {
				j.Fatalf("%s: %v", name, err)
			}
			for _, r := range j.others(0) {
				in[r].Release(j.take(in[r], c, 3000).Seq)
			}
			j.settle()
			if !bytes.Equal(b, want) {
				j.Errorf("%s: clock %d: what was begun has changed after Commit", name, c)
			}
		}
	}
}

// headerTravels: the box carries every field of the stamp as it is.
func headerTravels(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8})
	for seq, s := range []rdma.Stamp{
		{},
		{Clock: math.MaxUint64, Age: math.MaxUint64, Tag: math.MaxUint64, Kind: math.MaxUint16, Weight: math.Inf(-1)},
		{Clock: 1 << 63, Age: 1, Tag: 2, Kind: 3, Weight: -0.5},
	} {
		if _, err := out.Begin(); err != nil {
			j.Fatal(err)
		}
		if err := out.Commit(0, s, nil); err != nil {
			j.Fatal(err)
		}
		j.settle()
		for _, r := range j.others(0) {
			u, ok, err := in[r].Next()
			if err != nil || !ok || u.Stamp != s || u.Seq != uint64(seq)+1 || u.Data == nil {
				j.Errorf("rank %d: %+v, %v, %v; expected %+v", r, u, ok, err, s)
			}
		}
	}
}

// beginCommit: what is refused, and what stays as it was then.
func beginCommit(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 100})
	if err := out.Commit(1, rdma.Stamp{}, nil); err == nil {
		j.Error("Commit without Begin was accepted")
	}
	a, err := out.Begin()
	if err != nil || len(a) != 100 {
		j.Fatalf("Begin: %d bytes, error %v", len(a), err)
	}
	if at := reflect.ValueOf(a).Pointer(); at%64 != 0 {
		j.Errorf("payload begins at %#x, not at a cache line", at)
	}
	for _, bad := range []int{-1, 101} {
		if out.Commit(bad, rdma.Stamp{}, nil) == nil {
			j.Errorf("Commit of %d bytes of 100 was accepted", bad)
		}
	}
	for _, bad := range []int{-1, 0, j.n()} { // 0 is the sender itself
		if out.Commit(1, rdma.Stamp{}, []int{1, bad}) == nil {
			j.Errorf("Commit to rank %d was accepted", bad)
		}
	}
	if b, err := out.Begin(); err != nil || &a[0] != &b[0] {
		j.Errorf("a second Begin gave another slot, error %v", err)
	}
	j.none(in[1])
	pattern(a[:60], 0, 5)
	if err := out.Commit(60, stamp(0, 5), []int{1, 1}); err != nil {
		j.Fatal(err)
	}
	j.take(in[1], 5, 60)
	if p := in[1].Published(); p != 1 {
		j.Errorf("a reader named twice got %d updates", p)
	}
	if err := errors.Join(out.Close(), out.Close()); err != nil {
		j.Errorf("closing twice: %v", err)
	}
	if _, err := out.Begin(); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Begin after Close: %v", err)
	}
	if err := out.Commit(0, rdma.Stamp{}, nil); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Commit after Close: %v", err)
	}
	if err := out.Advance(7); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Advance after Close: %v", err)
	}
	if err := errors.Join(in[1].Close(), in[1].Close()); err != nil {
		j.Errorf("closing twice: %v", err)
	}
	if _, _, err := in[1].Next(); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Next after Close: %v", err)
	}
	if _, err := in[1].Clock(); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Clock after Close: %v", err)
	}
}

func newestReplaces(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 64})
	clock := uint64(0)
	for burst := 1; burst < 8; burst++ {
		for range burst {
			clock++
			j.mustPut(out, 0, clock, 64, nil)
		}
		for _, r := range j.others(0) {
			if u := j.take(in[r], clock, 64); u.Seq != clock {
				j.Errorf("rank %d: seq %d, expected %d", r, u.Seq, clock)
			}
			j.none(in[r])
		}
	}
	for _, r := range j.others(0) {
		if p := in[r].Published(); p != clock {
			j.Errorf("rank %d: %d published, expected %d", r, p, clock)
		}
	}
}

// newestLengths: nothing, one byte, odd, several pages, and less than the slot.
func newestLengths(j *job) {
	for _, bytes := range []int{0, 1, 7, 63, 64, 65, 4095, 4096, 65536 - 64, 65537, 1<<20 + 1} {
		out, in := j.star(rdma.Spec{Bytes: bytes})
		clock := uint64(0)
		for _, n := range []int{bytes, 0, bytes / 2, bytes} {
			clock++
			j.mustPut(out, 0, clock, n, nil)
			for _, r := range j.others(0) {
				j.take(in[r], clock, n)
			}
		}
		for _, r := range j.others(0) {
			if err := in[r].Close(); err != nil {
				j.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			j.Fatal(err)
		}
	}
}

// newestSubset: a reader keeps the newest that was meant for it, but sees the
// clock of all. Every reader pins another old slot, so that the most slots are
// needed.
func newestSubset(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 256})
	held := make([]rdma.Update, j.n())
	clock := uint64(0)
	for round := range 5 {
		for _, r := range j.others(0) {
			clock++
			j.mustPut(out, 0, clock, 256, []int{r})
			held[r] = j.take(in[r], clock, 256)
		}
		for _, r := range j.others(0) { // a newer one for each, unread; all pins stay
			clock++
			j.mustPut(out, 0, clock, 256, []int{r})
		}
		clock++
		j.mustPut(out, 0, clock, 256, []int{}) // for nobody
		j.settle()
		for _, r := range j.others(0) {
			if err := intact(held[r], 0, 256); err != nil {
				j.Fatalf("round %d: what rank %d holds: %v", round, r, err)
			}
			if c, err := in[r].Clock(); c != clock || err != nil {
				j.Errorf("rank %d sees clock %d, error %v; expected %d", r, c, err, clock)
			}
			if p := in[r].Published(); p != uint64(2*round+2) {
				j.Errorf("rank %d: %d published, expected %d", r, p, 2*round+2)
			}
		}
		for i, r := range j.others(0) {
			j.take(in[r], clock-uint64(j.n()-1-i), 256)
			j.none(in[r])
		}
	}
}

// pinHolds: what Next returned stays as it is, without a copy, until the next
// one replaces it.
func pinHolds(j *job) {
	const bytes = 10000
	out, in := j.star(rdma.Spec{Bytes: bytes})
	j.mustPut(out, 0, 1, bytes, nil)
	held := make([]rdma.Update, j.n())
	for _, r := range j.others(0) {
		held[r] = j.take(in[r], 1, bytes)
	}
	for c := uint64(2); c < 20; c++ {
		j.mustPut(out, 0, c, bytes, nil)
		for _, r := range j.others(0) {
			if err := intact(held[r], 0, bytes); err != nil {
				j.Fatalf("after clock %d: %v", c, err)
			}
			if r%2 == 0 { // odd ranks keep the first for ever
				held[r] = j.take(in[r], c, bytes)
				j.none(in[r])
			}
		}
	}
}

// senderNeverWaits is G4: with readers that hold, that have never read, that are
// dead and that are gone, Begin always has a slot.
func senderNeverWaits(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 32})
	j.mustPut(out, 0, 1, 32, nil)
	for _, r := range j.others(0) {
		switch r % 4 {
		case 0:
			if err := j.ranks[r].Close(); err != nil {
				j.Fatal(err)
			}
		case 1:
			j.take(in[r], 1, 32)
		case 2:
			j.take(in[r], 1, 32)
			j.ranks[r].Abort(rdma.HasFailed(r, "dies while it holds an update"))
		}
	}
	for c := uint64(2); c < 1000; c++ {
		j.mustPut(out, 0, c, 32, nil)
	}
	j.take(in[1], 999, 32)
}

// ackedNewest: Release says how far the reader is, and skips the unseen.
func ackedNewest(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8})
	acked := func(want uint64) {
		j.Helper()
		j.settle()
		if a := out.Acked(1); a != want {
			j.Errorf("acked %d, expected %d", a, want)
		}
	}
	acked(0)
	in[1].Release(math.MaxUint64) // there is nothing
	acked(0)
	j.mustPut(out, 0, 1, 8, nil)
	u := j.take(in[1], 1, 8)
	acked(0)
	in[1].Release(u.Seq)
	acked(1)
	j.mustPut(out, 0, 2, 8, nil)
	in[1].Release(1) // once more: skips nothing
	u = j.take(in[1], 2, 8)
	in[1].Release(1) // does not cover what is held
	for c := uint64(3); c <= 9; c++ {
		j.mustPut(out, 0, c, 8, nil)
	}
	if err := intact(u, 0, 8); err != nil {
		j.Error(err)
	}
	j.settle()
	in[1].Release(9) // skips 3 to 9
	acked(9)
	j.none(in[1])
	j.mustPut(out, 0, 10, 8, nil)
	j.settle()
	in[1].Release(math.MaxUint64) // all that there is
	acked(10)
	j.none(in[1])
	j.mustPut(out, 0, 11, 8, nil)
	j.take(in[1], 11, 8)
	if err := in[1].Close(); err != nil {
		j.Fatal(err)
	}
	acked(math.MaxUint64)
	if a := out.Acked(0); a != 0 {
		j.Errorf("a rank that does not read has acked %d", a)
	}
}

// clockAdvance: the clock only grows, with or without an update.
func clockAdvance(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8})
	for _, step := range []struct {
		commit      bool
		clock, want uint64
	}{{false, 3, 3}, {true, 2, 3}, {false, 1, 3}, {true, 4, 4}, {false, 10, 10}, {true, 11, 11}} {
		if step.commit {
			j.mustPut(out, 0, step.clock, 8, nil)
		} else if err := out.Advance(step.clock); err != nil {
			j.Fatal(err)
		}
		j.settle()
		for _, r := range j.others(0) {
			if c, err := in[r].Clock(); c != step.want || err != nil {
				j.Errorf("%+v: rank %d sees clock %d, error %v", step, r, c, err)
			}
		}
	}
}
