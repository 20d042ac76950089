package box

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"malt/rdma"
)

// A long random run against the obvious twin: a list of what was sent, and how
// far each reader is.
func TestQueueTwin(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		k, d := 1+random.IntN(4), 1+random.IntN(4)
		r := newRig(t, rdma.Spec{Bytes: 8, Mode: rdma.Queue(d)}, k)
		var sent []map[int]bool
		taken, acked := make([]int, k), make([]int, k)
		for range 1000 {
			slowest := len(sent)
			for i := range k {
				slowest = min(slowest, acked[i])
			}
			if b, err := r.out.Begin(); err != nil || (b != nil) != (len(sent)-slowest < d) {
				t.Fatalf("seed %d: %d sent, slowest at %d, depth %d: slot free %v, error %v", seed, len(sent), slowest, d, b != nil, err)
			} else if b != nil && random.IntN(2) == 0 {
				mine, to := map[int]bool{}, []int{}
				for i := range k {
					if random.IntN(3) > 0 {
						mine[i] = true
						to = append(to, i+1)
					}
				}
				r.send(uint64(len(sent)+1), to...)
				sent = append(sent, mine)
			}
			i := random.IntN(k)
			u, ok, err := r.in[i].Next()
			if err != nil || ok != (taken[i] < len(sent)) {
				t.Fatalf("seed %d: reader %d has %d of %d: ok %v, error %v", seed, i, taken[i], len(sent), ok, err)
			}
			if ok {
				taken[i]++
				if u.Seq != uint64(taken[i]) || (u.Data != nil) != sent[taken[i]-1][i] || u.Data != nil && u.Data[0] != byte(u.Seq) {
					t.Fatalf("seed %d: reader %d: update %d is %+v", seed, i, taken[i], u)
				}
			}
			if random.IntN(2) == 0 {
				acked[i] += random.IntN(taken[i] - acked[i] + 1)
				r.in[i].Release(uint64(acked[i]))
			}
		}
	}
}

// Only those concerned are rung: an ack that says nothing new rings nobody.
func TestQueueRings(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8, Mode: rdma.Queue(2)}, 2)
	expect := func(what, want string) {
		t.Helper()
		if got := r.takeRings(); got != want {
			t.Errorf("%s rang %s, expected %s", what, got, want)
		}
	}
	r.send(1, 2)
	expect("a commit", "[2 3]")
	r.want(1, 1)
	r.in[1].Release(1)
	expect("a release", "[1]")
	r.in[1].Release(1)
	expect("the same release", "[]")
	r.in[0].Release(math.MaxUint64)
	expect("a release of all", "[1]")
	if err := r.in[0].Close(); err != nil {
		t.Fatal(err)
	}
	expect("a reader that leaves", "[1]")
	r.in[0].Release(5) // another goroutine, that has not heard
	expect("a release after leaving", "[]")
	if a := r.out.Acked(1); a != math.MaxUint64 {
		t.Errorf("acked %d after leaving", a)
	}
}

// DESIGN: room for at least 1,024 readers, in every mode, each with its own mark.
func TestManyReaders(t *testing.T) {
	const k = 1100
	for _, s := range []rdma.Spec{{Bytes: 8}, {Bytes: 8, Mode: rdma.ByClock}, {Bytes: 8, Mode: rdma.Queue(2)}} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			r := newRig(t, s, k)
			var even []int
			for i := 1; i <= k; i += 2 {
				even = append(even, i+1)
			}
			r.send(1, even...)
			for i, in := range r.in {
				u, ok, err := in.Next()
				mine := i%2 == 1
				if err != nil || ok != (mine || s.Mode.Depth() > 0) || (u.Data != nil) != mine {
					t.Fatalf("reader %d: %+v, ok %v, error %v", i, u, ok, err)
				}
				in.Release(1)
			}
			r.send(2)
			for i := range r.in {
				r.want(i, 2)
			}
		})
	}
}

// A queue that is misused by Excuse of a reader that reads gives an error, not a
// wrong update.
func TestExcusedReader(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8, Mode: rdma.Queue(2)}, 1)
	for c := uint64(1); c <= 6; c++ {
		r.send(c)
		r.out.Excuse(1)
	}
	if u, ok, err := r.in[0].Next(); ok || err == nil {
		t.Errorf("%+v, %v, %v", u, ok, err)
	}
	r.in[0].Release(5)
	r.want(0, 6)
}
