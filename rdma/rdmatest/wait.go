package rdmatest

import (
	"context"
	"errors"
	"sync/atomic"

	"malt/rdma"
)

var waitCases = []testCase{
	{"wait and wake", 1, waitWake},
	{"several wait", 1, severalWait},
	{"wait given up", 1, waitGivenUp},
	{"everything rings those concerned", 2, everythingRings},
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

// everythingRings: each change that somebody can wait for wakes him. Nobody
// helps: a ring that is missing hangs the test.
func everythingRings(j *job) {
	spec := rdma.Spec{Bytes: 8, Depth: 1}
	out, in := j.star(spec)
	words := make([]rdma.Words, j.n())
	j.every(func(r int) (err error) {
		words[r], err = j.ranks[r].Words(j.ctx, "go", 1)
		return err
	})
	until := func(r int, cond func() bool) error { return j.ranks[r].Wait(j.ctx, cond) }
	j.every(func(r int) error {
		if r != 0 {
			var u rdma.Update
			err := until(r, func() (ok bool) { u, ok, _ = in[r].Next(); return ok })
			in[r].Release(u.Seq)
			if err == nil {
				err = until(r, func() bool { c, _ := in[r].Clock(); return c == 7 })
			}
			if err == nil {
				err = until(r, func() bool { v, _ := words[r].Get(0, 0); return v == 3 })
			}
			words[r].Set(0, 1)
			return err
		}
		if full, err := put(out, 0, 1, 8, nil); full || err != nil {
			return errors.New("no slot")
		}
		if err := until(0, func() bool { b, _ := out.Begin(); return b != nil }); err != nil {
			return err
		}
		if err := out.Advance(7); err != nil {
			return err
		}
		words[0].Set(0, 3)
		for _, peer := range j.others(0) {
			if err := until(0, func() bool { v, _ := words[0].Get(peer, 0); return v == 1 }); err != nil {
				return err
			}
		}
		return nil
	})
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
