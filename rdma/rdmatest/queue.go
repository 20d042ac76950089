package rdmatest

import (
	"errors"
	"fmt"
	"math"

	"malt/rdma"
)

var queueCases = []testCase{
	{"G2 queue keeps every update", 2, queueKeeps},
	{"queue to some", 2, queueSubset},
	{"queue holds until released", 2, queueHolds},
	{"queue skips what is released", 2, queueSkips},
	{"excuse", 2, excuse},
	{"queue does not wait for the gone", 3, queueGone},
	{"queue is drained after leaving", 2, queueDrained},
	{"release by another goroutine", 2, queueOtherGoroutine},
}

// full asserts that the next slot is not free.
func (j *job) full(out rdma.Outbox) {
	j.Helper()
	j.settle()
	if b, err := out.Begin(); b != nil || err != nil {
		j.Fatalf("Begin on a full queue: %d bytes, error %v", len(b), err)
	}
}

// queueKeeps: depth 1 to 4, every update once and in order, never overwritten.
func queueKeeps(j *job) {
	for depth := 1; depth <= 4; depth++ {
		out := j.publish(0, fmt.Sprint(depth), rdma.Spec{Bytes: 500, Mode: rdma.Queue(depth)}, j.others(0)...)
		var in []rdma.Inbox
		for _, r := range j.others(0) {
			in = append(in, j.subscribe(r, fmt.Sprint(depth), rdma.Spec{Bytes: 500, Mode: rdma.Queue(depth)}, 0))
		}
		clock := uint64(0)
		for range 3 * depth {
			first := clock + 1
			for range depth {
				clock++
				j.mustPut(out, 0, clock, 500, nil)
			}
			j.full(out)
			for i, in := range in {
				for c := first; c <= clock; c++ {
					if u := j.take(in, c, 500); u.Seq != c {
						j.Errorf("seq %d, expected %d", u.Seq, c)
					}
				}
				j.none(in)
				j.full(out) // not released yet
				in.Release(clock)
				if i < j.n()-2 {
					j.full(out) // not by all
				}
				j.settle()
				if a := out.Acked(in.From() + 1 + i); a != clock {
					j.Errorf("acked %d, expected %d", a, clock)
				}
			}
		}
	}
}

// queueSubset: the others get an update without data, which they release too.
func queueSubset(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 16, Mode: rdma.Queue(2)})
	others := j.others(0)
	for c := uint64(1); c < 50; c++ {
		var to []int // nobody at first, then by the bits of c
		for i, r := range others {
			if c>>i&1 == 1 {
				to = append(to, r)
			}
		}
		if to == nil {
			to = []int{}
		}
		j.mustPut(out, 0, c, 0, to) // of length 0: still not "no data"
		j.settle()
		for i, r := range others {
			u, ok, err := in[r].Next()
			if !ok || err != nil || u.Stamp != stamp(0, c) || u.Seq != c {
				j.Fatalf("rank %d: %+v, ok %v, error %v; expected clock %d", r, u, ok, err, c)
			}
			if mine := c>>i&1 == 1; mine != (u.Data != nil) {
				j.Errorf("rank %d, clock %d: data %v, meant for it: %v", r, c, u.Data, mine)
			}
			in[r].Release(u.Seq)
		}
		j.settle()
	}
	for i, r := range others {
		want := uint64(0)
		for c := uint64(1); c < 50; c++ {
			want += c >> i & 1
		}
		if p := in[r].Published(); p != want {
			j.Errorf("rank %d: %d published, expected %d", r, p, want)
		}
		if got := j.ranks[r].Traffic(0).ReceivedMessages; got != want {
			j.Errorf("rank %d received %d, expected %d", r, got, want)
		}
	}
}

// queueHolds: several updates can be in use together, each valid until released.
func queueHolds(j *job) {
	const depth, bytes = 3, 5000
	out, in := j.star(rdma.Spec{Bytes: bytes, Mode: rdma.Queue(depth)})
	for c := uint64(1); c <= depth; c++ {
		j.mustPut(out, 0, c, bytes, nil)
	}
	for _, r := range j.others(0) {
		var held []rdma.Update
		for c := uint64(1); c <= depth; c++ {
			held = append(held, j.take(in[r], c, bytes))
		}
		for _, u := range held {
			if err := intact(u, 0, bytes); err != nil {
				j.Error(err)
			}
		}
		in[r].Release(2)
	}
	j.settle()
	j.mustPut(out, 0, 4, bytes, nil)
	j.mustPut(out, 0, 5, bytes, nil)
	j.full(out)
}

// queueSkips: Release of more than was returned skips it.
func queueSkips(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8, Mode: rdma.Queue(4)})
	for c := uint64(1); c <= 4; c++ {
		j.mustPut(out, 0, c, 8, nil)
	}
	j.take(in[1], 1, 8)
	in[1].Release(3)
	j.take(in[1], 4, 8)
	in[1].Release(2) // long done: nothing comes back
	j.none(in[1])
	for _, r := range j.others(0) {
		in[r].Release(math.MaxUint64) // all that there is, not what comes
		j.settle()
		if a := out.Acked(r); a != 4 {
			j.Errorf("rank %d has acked %d, expected 4", r, a)
		}
	}
	j.mustPut(out, 0, 5, 8, nil)
	for _, r := range j.others(0) {
		j.take(in[r], 5, 8)
	}
}

// excuse: what was sent to a reader that is elsewhere does not hold the sender
// up; what is sent afterwards does again.
func excuse(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8, Mode: rdma.Queue(2)})
	away := j.n() - 1
	for c := uint64(1); c <= 10; c += 2 {
		j.mustPut(out, 0, c, 8, nil)
		j.mustPut(out, 0, c+1, 8, nil)
		for r := 1; r < away; r++ {
			j.take(in[r], c, 8)
			j.take(in[r], c+1, 8)
			in[r].Release(c + 1)
		}
		j.full(out)
		out.Excuse(away)
	}
	in[away].Release(10) // it is back, and gives up what it missed
	j.mustPut(out, 0, 11, 8, nil)
	j.take(in[away], 11, 8)
	j.mustPut(out, 0, 12, 8, nil)
	j.full(out)
	out.Excuse(0) // not a reader: nothing happens
	j.full(out)
}

// queueGone: readers that are dead or have left, or have closed their end, are
// not waited for.
func queueGone(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8, Mode: rdma.Queue(1)})
	j.mustPut(out, 0, 1, 8, nil)
	j.full(out)
	last := j.n() - 1
	for r := 1; r < last; r++ {
		switch r % 3 {
		case 0:
			if err := j.ranks[r].Close(); err != nil {
				j.Fatal(err)
			}
		case 1:
			j.ranks[r].Abort(rdma.HasFailed(r, "gone"))
		case 2:
			if err := in[r].Close(); err != nil {
				j.Fatal(err)
			}
			j.settle()
			if a := out.Acked(r); a != math.MaxUint64 {
				j.Errorf("a closed reader has acked %d", a)
			}
		}
		j.full(out) // the last is still there
	}
	j.take(in[last], 1, 8)
	in[last].Release(1)
	j.settle()
	j.mustPut(out, 0, 2, 8, nil)
	j.take(in[last], 2, 8)
}

// queueDrained: the final value of Clock, then what is still there, then
// nothing.
func queueDrained(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 8, Mode: rdma.Queue(3)})
	j.mustPut(out, 0, 5, 8, nil)
	j.mustPut(out, 0, 6, 8, nil)
	if _, err := out.Begin(); err != nil { // begun, never committed
		j.Fatal(err)
	}
	if err := out.Close(); err != nil {
		j.Fatal(err)
	}
	j.settle()
	for _, r := range j.others(0) {
		if c, err := in[r].Clock(); c != 6 || !errors.Is(err, rdma.ErrLeft) {
			j.Errorf("rank %d: clock %d, error %v", r, c, err)
		}
		j.take(in[r], 5, 8)
		j.take(in[r], 6, 8)
		j.none(in[r])
		in[r].Release(6)
	}
}

// queueOtherGoroutine: one takes, another is done with it later.
func queueOtherGoroutine(j *job) {
	const updates, bytes = 300, 64
	done := make(chan rdma.Update, 8)
	out, in := j.star(rdma.Spec{Bytes: bytes, Mode: rdma.Queue(3)})
	for _, r := range j.others(0) {
		if r != 1 {
			if err := in[r].Close(); err != nil {
				j.Fatal(err)
			}
		}
	}
	released := make(chan error, 1)
	go func() {
		var failed error
		for u := range done {
			failed = errors.Join(failed, intact(u, 0, bytes))
			in[1].Release(u.Seq)
		}
		released <- failed
	}()
	j.every(func(r int) error {
		switch r {
		case 0:
			return sendAll(j, j.ranks[0], out, 0, updates, bytes)
		case 1:
			defer close(done)
			for c := uint64(1); c <= updates; c++ {
				var u rdma.Update
				err := waitFor(j, j.ranks[1], func() (ok bool, err error) {
					u, ok, err = in[1].Next()
					return ok, err
				})
				if err != nil || u.Clock != c {
					return fmt.Errorf("clock %d, expected %d, error %v", u.Clock, c, err)
				}
				done <- u
			}
		}
		return nil
	})
	if err := <-released; err != nil {
		j.Error(err)
	}
}

// sendAll scatters clocks 1 to updates, waiting where the queue is full.
func sendAll(j *job, t rdma.Transport, out rdma.Outbox, sender, updates, bytes int) error {
	for c := uint64(1); c <= uint64(updates); c++ {
		err := waitFor(j, t, func() (bool, error) {
			full, err := put(out, sender, c, bytes, nil)
			return !full, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
