package box

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"malt/rdma"
)

// PROTOCOLS, newest mode: k+2 slots suffice when every update is for all, k+3 in
// lock-step, whatever the readers pin; and they are needed.
func TestSlotsForAll(t *testing.T) {
	for _, mode := range []rdma.Mode{rdma.Newest, rdma.ByClock} {
		for k := 1; k <= 5; k++ {
			r := newRig(t, rdma.Spec{Bytes: 8, Mode: mode}, k)
			clock := uint64(0)
			for i := range k { // each reader pins another old update
				clock++
				r.send(clock)
				r.want(i, clock)
			}
			for range 20 {
				clock++
				r.send(clock)
			}
			if want := k + r.layout.parities() + 1; len(r.reserved) != want {
				t.Errorf("mode %v, %d readers: %d slots used, expected %d", mode, k, len(r.reserved), want)
			}
		}
	}
}

// With subsets 2k+1 (3k+1) are enough, and needed: each reader's latest names a
// slot of its own, and each pins another.
func TestSlotsForSubsets(t *testing.T) {
	for _, mode := range []rdma.Mode{rdma.Newest, rdma.ByClock} {
		for k := 1; k <= 5; k++ {
			r := newRig(t, rdma.Spec{Bytes: 8, Mode: mode}, k)
			clock := uint64(0)
			for i := range k {
				for range r.layout.parities() {
					clock++
					r.send(clock, i+1)
				}
				r.want(i, clock)
				for range r.layout.parities() {
					clock++
					r.send(clock, i+1)
				}
			}
			if _, err := r.out.Begin(); err != nil {
				t.Fatal(err)
			}
			if len(r.reserved) != r.layout.Slots {
				t.Errorf("mode %v, %d readers: %d slots used, expected all %d", mode, k, len(r.reserved), r.layout.Slots)
			}
			if !slices.IsSorted(r.reserved) {
				t.Errorf("slots were first used in the order %v: not the lowest free", r.reserved)
			}
		}
	}
}

// A long random run against the obvious twin: a map from reader to what was
// meant for it last.
func TestNewestTwin(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		k := 1 + random.IntN(4)
		r := newRig(t, rdma.Spec{Bytes: 8}, k)
		last, seen := make([]uint64, k), make([]uint64, k)
		held := make([]rdma.Update, k)
		for clock := uint64(1); clock < 300; clock++ {
			var to []int
			for i := range k {
				if random.IntN(2) == 0 {
					to = append(to, i+1)
					last[i] = clock
				}
			}
			if to == nil {
				to = []int{}
			}
			r.send(clock, to...)
			i := random.IntN(k)
			switch random.IntN(4) {
			case 0:
				r.in[i].Release(held[i].Seq)
				held[i] = rdma.Update{}
			case 1:
				if last[i] > seen[i] {
					held[i] = r.want(i, last[i])
					seen[i] = last[i]
				} else if _, ok, err := r.in[i].Next(); ok || err != nil {
					t.Fatalf("seed %d clock %d: reader %d got something: %v, %v", seed, clock, i, ok, err)
				}
			}
			for i, u := range held {
				if u.Data != nil && u.Data[0] != byte(u.Clock) {
					t.Fatalf("seed %d clock %d: what reader %d holds was overwritten", seed, clock, i)
				}
			}
		}
	}
}

// Only those concerned are rung: every reader at a publication, also who is left
// out, since the clock is for all; the sender when a reader leaves.
func TestNewestRings(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8}, 3)
	expect := func(what, want string) {
		t.Helper()
		if got := r.takeRings(); got != want {
			t.Errorf("%s rang %s, expected %s", what, got, want)
		}
	}
	expect("attaching", "[]")
	r.send(1, 2)
	expect("a commit", "[2 3 4]")
	u := r.want(1, 1)
	r.in[1].Release(u.Seq)
	expect("a release", "[]")
	if err := r.out.Advance(5); err != nil {
		t.Fatal(err)
	}
	expect("a clock", "[2 3 4]")
	if err := r.out.Advance(5); err != nil {
		t.Fatal(err)
	}
	expect("the same clock", "[]")
	if err := r.in[0].Close(); err != nil {
		t.Fatal(err)
	}
	expect("a reader that leaves", "[1]")
	if err := r.out.Close(); err != nil {
		t.Fatal(err)
	}
	expect("a sender that leaves", "[3 4]")
}

// A reader that attaches late gets what is there; nobody rang it before.
func TestLateReader(t *testing.T) {
	for _, s := range []rdma.Spec{{Bytes: 8}, {Bytes: 8, Mode: rdma.ByClock}, {Bytes: 8, Mode: rdma.Queue(2)}} {
		r := newRig(t, s, 1)
		r.control.readerBell(0).Store(0)
		r.send(1)
		if got := r.takeRings(); got != "[]" {
			t.Errorf("rang %s", got)
		}
		in, err := NewInbox(r.end(1), 0)
		if err != nil {
			t.Fatal(err)
		}
		r.in[0] = in
		r.want(0, 1)
		r.send(2)
		if got := r.takeRings(); got != "[2]" {
			t.Errorf("rang %s", got)
		}
	}
}

// Lack of memory is an error of that Begin, and only of slots never used.
func TestReserveRefused(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8}, 1)
	r.refuse = fmt.Errorf("none left: %w", rdma.ErrNoMemory)
	if b, err := r.out.Begin(); b != nil || !errors.Is(err, rdma.ErrNoMemory) {
		t.Fatalf("Begin: %v, %v", b, err)
	}
	if err := r.out.Commit(0, rdma.Stamp{}, nil); err == nil {
		t.Fatal("Commit after a Begin that failed was accepted")
	}
	r.refuse = nil
	r.send(1)
	r.send(2)
	r.want(0, 2)
	r.refuse = rdma.ErrNoMemory
	r.send(3) // slot 0 again
	if _, err := r.out.Begin(); !errors.Is(err, rdma.ErrNoMemory) {
		t.Fatalf("Begin with all slots in use: %v", err)
	}
	r.want(0, 3)
	r.send(4) // the reader has given slot 1 back
	if want := []int{0, 1}; !slices.Equal(r.reserved, want) {
		t.Errorf("reserved %v, expected %v", r.reserved, want)
	}
}

// TestPartialIsReservedInPieces: a slot has as much memory as the longest payload
// that was written into it, and what lacks is an error of that Reserve.
func TestPartialIsReservedInPieces(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 10 * backStep, Partial: true}, 1)
	if err := r.out.Reserve(1); err == nil {
		t.Error("Reserve without Begin was accepted")
	}
	send := func(n int) {
		t.Helper()
		if _, err := r.out.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := r.out.Reserve(n); err != nil {
			t.Fatal(err)
		}
		if err := r.out.Commit(n, rdma.Stamp{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	send(10)
	send(3 * backStep)
	send(2*backStep - headerBytes)
	send(2 * backStep)
	send(10 * backStep)
	if want := [][3]int{
		{0, 0, backStep}, {1, 0, backStep}, {1, backStep, 4 * backStep}, {0, backStep, 2 * backStep}, {0, 2 * backStep, r.layout.Stride},
	}; !slices.Equal(r.ranges, want) {
		t.Errorf("reserved slot, from, to %v, want %v", r.ranges, want)
	}
	if _, err := r.out.Begin(); err != nil {
		t.Fatal(err)
	}
	r.refuse = rdma.ErrNoMemory
	if err := r.out.Reserve(5 * backStep); !errors.Is(err, rdma.ErrNoMemory) {
		t.Errorf("Reserve: %v", err)
	}
	r.refuse = nil
	send(5 * backStep)
	if err := r.out.Close(); err != nil || !errors.Is(r.out.Reserve(1), rdma.ErrClosed) {
		t.Error("Reserve of a closed box was accepted")
	}
}

// An update of another view does not count in lock-step.
func TestLockstepGeneration(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8, Mode: rdma.ByClock}, 1)
	r.out.w.header.Generation++
	r.send(1)
	if _, ok, err := r.in[0].At(1); ok || err != nil {
		t.Errorf("At: ok %v, error %v; expected nothing", ok, err)
	}
	r.out.w.header.Generation--
	r.send(2)
	if _, ok, err := r.in[0].At(2); !ok || err != nil {
		t.Errorf("At: ok %v, error %v", ok, err)
	}
}

// At of a clock for which there is nothing newer does not disturb what is held.
func TestAtKeepsWhatIsHeld(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8, Mode: rdma.ByClock}, 1)
	r.send(1)
	r.send(2)
	u, ok, err := r.in[0].At(2)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	for range 2 {
		if u, ok, err := r.in[0].At(4); u.Clock != 2 || !ok || err != nil {
			t.Fatal(u.Clock, ok, err)
		}
	}
	for c := uint64(3); c < 30; c++ {
		r.send(c)
	}
	if u.Data[0] != 2 || r.control.pin(0).Load() == 0 {
		t.Errorf("what is held was overwritten: %v", u.Data)
	}
}

// The seq has 48 bits; what does not fit is an error, not a wrong update.
func TestSeqEnds(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8}, 1)
	r.out.w.seq = 1<<48 - 2
	r.send(1)
	if u := r.want(0, 1); u.Seq != 1<<48-1 {
		t.Errorf("seq %d", u.Seq)
	}
	if _, err := r.out.Begin(); err == nil {
		t.Error("the seq ran over")
	}
}
