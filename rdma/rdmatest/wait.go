package rdmatest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"malt/rdma"
)

var waitCases = []testCase{
	{"wait and wake", 1, waitWake},
	{"several wait", 1, severalWait},
	{"wait given up", 1, waitGivenUp},
	{"everything rings those concerned", 2, everythingRings},
	{"ends ring", 2, endsRing},
	{"ping-pong", 2, pingPong},
	{"sub", 1, subWakes},
	{"sub boxes", 2, subBoxes},
}

// waitWake: step runs at once, and once more at each ring.
func waitWake(j *job) {
	t := j.ranks[0]
	runs := 0
	if err := t.Wait(j.ctx, func() bool { runs++; return true }); err != nil || runs != 1 {
		j.Fatalf("step ran %d times, error %v", runs, err)
	}
	// The ring may come before step has returned, or when the wait sleeps.
	runs = 0
	err := t.Wait(j.ctx, func() bool {
		runs++
		if runs == 1 {
			go t.Wake()
		}
		return runs == 2
	})
	if err != nil || runs != 2 {
		j.Errorf("step ran %d times, error %v", runs, err)
	}
}

// severalWait: a ring is for all who wait.
func severalWait(j *job) {
	t := j.ranks[0]
	const waiters = 8
	var turn atomic.Int64
	done := make(chan error, waiters)
	for i := range waiters {
		go func() {
			done <- t.Wait(j.ctx, func() bool { // each passes the turn to the next
				if turn.Load() != int64(i) {
					return false
				}
				turn.Add(1)
				t.Wake()
				return true
			})
		}()
	}
	for range waiters {
		if err := <-done; err != nil {
			j.Error(err)
		}
	}
}

func waitGivenUp(j *job) {
	ctx, cancel := context.WithCancel(j.ctx)
	first := true
	err := j.ranks[0].Wait(ctx, func() bool {
		if first { // while it waits, as far as the caller can tell
			first = false
			go cancel()
		}
		return false
	})
	if !errors.Is(err, context.Canceled) {
		j.Errorf("Wait: %v; expected context.Canceled", err)
	}
	if err := j.ranks[0].Wait(ctx, func() bool { return true }); err != nil {
		j.Errorf("what is there already was refused: %v", err)
	}
}

// rings lets rank wait for look, which must be false at first, and makes the
// change once that was seen: so nothing but the ring of the change itself can
// end the wait, if it sleeps, and a ring that is missing hangs the test.
func (j *job) rings(what string, rank int, look func() bool, change func() error) {
	j.Helper()
	looked, done := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		done <- j.ranks[rank].Wait(j.ctx, func() bool {
			ok := look()
			if first {
				first = false
				if ok {
					j.Errorf("%s: true before the change", what)
				}
				close(looked)
			}
			return ok
		})
	}()
	<-looked
	if err := change(); err != nil {
		j.Errorf("%s: %v", what, err)
	}
	if err := <-done; err != nil {
		j.Fatalf("%s: rank %d was not rung: %v", what, rank, err)
	}
}

// everythingRings: whatever a rank can wait for rings it, for every rank that is
// concerned.
func everythingRings(j *job) {
	newest, in := j.star(rdma.Spec{Bytes: 8})
	words := j.makeWords("words", 1)
	clock := uint64(0)
	for _, r := range j.others(0) {
		name := fmt.Sprint("queue of ", r)
		queue := j.publish(0, name, rdma.Spec{Bytes: 8, Mode: rdma.Queue(1)}, r)
		qin := j.subscribe(r, name, rdma.Spec{Bytes: 8, Mode: rdma.Queue(1)}, 0)
		next := func(in rdma.Inbox) func() bool {
			return func() bool {
				u, ok, err := in.Next()
				if err != nil {
					j.Errorf("rank %d: %v", r, err)
				}
				return ok && u.Clock == clock
			}
		}
		clock++
		j.rings("an update", r, next(in[r]), func() error { _, err := put(newest, 0, clock, 8, nil); return err })
		j.rings("an update of a queue", r, next(qin), func() error { _, err := put(queue, 0, clock, 8, nil); return err })
		j.rings("a release in a queue", 0, func() bool {
			b, err := queue.Begin()
			return b != nil && err == nil
		}, func() error {
			qin.Release(1)
			return nil
		})
		at := func() bool { c, err := in[r].Clock(); return c == clock && err == nil }
		clock++
		j.rings("an update for others", r, at, func() error { _, err := put(newest, 0, clock, 8, []int{}); return err })
		clock++
		j.rings("a clock", r, at, func() error { return newest.Advance(clock) })
		j.rings("a word", r, func() bool { v, _ := words[r].Get(0, 0); return v == clock },
			func() error { words[0].Set(0, clock); return nil })
		j.rings("a word, at the sender", 0, func() bool { v, _ := words[0].Get(r, 0); return v == clock },
			func() error { words[r].Set(0, clock); return nil })
		j.rings("a reader that closes its end", 0, func() bool { return newest.Acked(r) == math.MaxUint64 }, in[r].Close)
	}
}

// endsRing: all who read a box learn that it, or its rank, has ended, and a
// sender that waits for a slot learns that the last reader has.
func endsRing(j *job) {
	left := func(in rdma.Inbox) func() bool {
		return func() bool { _, err := in.Clock(); return err != nil }
	}
	for _, r := range j.others(0) {
		name := fmt.Sprint("box of ", r)
		out := j.publish(0, name, rdma.Spec{}, r)
		j.rings("a box that is closed", r, left(j.subscribe(r, name, rdma.Spec{}, 0)), out.Close)
	}
	s := rdma.Spec{Mode: rdma.Queue(1)}
	out := j.publish(1, "queue", s, 0)
	j.mustPut(out, 1, 1, 0, nil)
	free := func() bool { b, err := out.Begin(); return b != nil && err == nil }
	var in rdma.Inbox
	if j.n() > 2 {
		in = j.subscribe(2, "ends", s, func() int { j.publish(0, "ends", s, 2); return 0 }())
	}
	j.rings("a reader that dies", 1, free, func() error { j.ranks[0].Abort(rdma.HasFailed(0, "an end")); return nil })
	if j.n() == 2 {
		return
	}
	j.settle()
	if !left(in)() {
		j.Error("a reader that was rung by a death does not see it")
	}
	for _, end := range []struct {
		what string
		do   func(t rdma.Transport) error
	}{
		{"a sender that leaves", rdma.Transport.Close},
		{"a sender that dies", func(t rdma.Transport) error { t.Abort(rdma.HasFailed(t.Rank(), "an end")); return nil }},
	} {
		for gone := 3; gone < j.n(); gone++ {
			if odd := end.what == "a sender that dies"; odd == (gone%2 == 0) {
				continue
			}
			j.publish(gone, "ends", s, 2)
			j.rings(end.what, 2, left(j.subscribe(2, "ends", s, gone)), func() error { return end.do(j.ranks[gone]) })
		}
	}
	out = j.publish(1, "again", s, 2)
	j.mustPut(out, 1, 1, 0, nil)
	j.rings("a reader that leaves", 1, free, j.ranks[2].Close)
}

// pingPong: thousands of hand-overs, each of which sleeps unless it was rung.
func pingPong(j *job) {
	const rounds = 2000
	s := rdma.Spec{Bytes: 8}
	j.every(func(r int) error {
		t := j.ranks[r]
		out, err := t.Publish(j.ctx, "token", s, []int{(r + 1) % j.n()})
		if err != nil {
			return err
		}
		from := (r + j.n() - 1) % j.n()
		in, err := t.Subscribe(j.ctx, "token", s, []int{from})
		if err != nil {
			return err
		}
		for c := uint64(1); c <= rounds; c++ {
			if r == 0 {
				if _, err := put(out, r, c, 8, nil); err != nil {
					return err
				}
			}
			err := waitFor(j, t, func() (bool, error) {
				u, ok, err := in[0].Next()
				if ok {
					err = intact(u, from, 8)
				}
				return ok && u.Clock == c, err
			})
			if err != nil {
				return err
			}
			if r != 0 {
				if _, err := put(out, r, c, 8, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// subWakes: a doorbell of its own; closing it leaves the parent open.
func subWakes(j *job) {
	t := j.ranks[0]
	sub, err := t.Sub()
	if err != nil {
		j.Fatal(err)
	}
	if sub.Rank() != t.Rank() || sub.Size() != t.Size() || sub.Name() != t.Name() {
		j.Errorf("sub is rank %d of %d, %s", sub.Rank(), sub.Size(), sub.Name())
	}
	var flag atomic.Bool
	done := make(chan error, 1)
	go func() { done <- sub.Wait(j.ctx, flag.Load) }()
	flag.Store(true)
	sub.Wake()
	if err := <-done; err != nil {
		j.Error(err)
	}
	if err := errors.Join(sub.Close(), sub.Close()); err != nil {
		j.Errorf("closing a sub twice: %v", err)
	}
	if err := sub.Wait(j.ctx, func() bool { return false }); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Wait on a closed sub: %v", err)
	}
	if err := t.State(0); err != nil {
		j.Errorf("closing a sub ended its rank: %v", err)
	}
	j.publish(0, "after", rdma.Spec{})
	if _, err := t.Sub(); err != nil { // left open: the parent closes it
		j.Fatal(err)
	}
}

// subBoxes: boxes made through a sub ring that one, and close with it.
func subBoxes(j *job) {
	sub, err := j.ranks[1].Sub()
	if err != nil {
		j.Fatal(err)
	}
	s := rdma.Spec{Bytes: 8}
	out := j.publish(0, "sub", s, 1)
	ins, err := sub.Subscribe(j.ctx, "sub", s, []int{0})
	if err != nil {
		j.Fatal(err)
	}
	j.every(func(r int) error {
		switch r {
		case 0:
			_, err := put(out, 0, 1, 8, nil)
			return err
		case 1:
			return waitFor(j, sub, func() (bool, error) { _, ok, err := ins[0].Next(); return ok, err })
		}
		return nil
	})
	back, err := sub.Publish(j.ctx, "back", s, []int{0})
	if err != nil {
		j.Fatal(err)
	}
	in := j.subscribe(0, "back", s, 1)
	if err := sub.Close(); err != nil {
		j.Fatal(err)
	}
	if _, err := back.Begin(); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Begin: %v", err)
	}
	j.settle()
	if _, err := in.Clock(); !errors.Is(err, rdma.ErrLeft) {
		j.Errorf("Clock: %v", err)
	}
	if err := j.ranks[0].State(1); err != nil {
		j.Errorf("the rank of a closed sub: %v", err)
	}
	if got := j.ranks[1].Traffic(0).ReceivedMessages; got != 1 {
		j.Errorf("the rank's traffic does not count what its sub received: %d", got)
	}
}
