package rdmatest

import (
	"fmt"

	"malt/rdma"
)

var lockstepCases = []testCase{
	{"at needs lock-step", 2, atNeedsLockstep},
	{"at gives the newest up to that clock", 2, atMost},
	{"lock-step to some", 2, lockstepSubset},
	{"lock-step with one barrier", 1, lockstepBarrier},
	{"lock-step by the clock", 2, lockstepClock},
}

func atNeedsLockstep(j *job) {
	for _, s := range []rdma.Spec{{Bytes: 8}, {Bytes: 8, Mode: rdma.Queue(2)}} {
		out, in := j.star(s)
		j.mustPut(out, 0, 1, 8, nil)
		if _, _, err := in[1].At(1); err == nil {
			j.Errorf("%+v: At was accepted", s)
		}
		j.take(in[1], 1, 8)
		if err := out.Close(); err != nil {
			j.Fatal(err)
		}
		for _, r := range j.others(0) {
			if err := in[r].Close(); err != nil {
				j.Fatal(err)
			}
		}
	}
}

// at is At that must give the intact update of that clock.
func (j *job) at(in rdma.Inbox, clock uint64, n int) rdma.Update {
	j.Helper()
	j.settle()
	u, ok, err := in.At(clock)
	if err != nil || !ok || u.Clock != clock {
		j.Fatalf("At(%d): got clock %d, ok %v, error %v", clock, u.Clock, ok, err)
	}
	if err := intact(u, in.From(), n); err != nil {
		j.Fatal(err)
	}
	return u
}

// notAt is At that must have nothing of that clock; older: of which it has the newest, 0 for nothing.
func (j *job) notAt(in rdma.Inbox, clock, older uint64) {
	j.Helper()
	j.settle()
	if u, ok, err := in.At(clock); ok != (older > 0) || u.Clock != older || err != nil {
		j.Fatalf("At(%d): got clock %d, error %v; expected clock %d", clock, u.Clock, err, older)
	}
}

// atMost: the sender may be one update ahead of a reader, and its clock may jump; the last two
// updates are there.
func atMost(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 200, Mode: rdma.ByClock})
	j.notAt(in[1], 0, 0)
	j.notAt(in[1], 1, 0)
	j.mustPut(out, 0, 1, 200, nil)
	for c := uint64(2); c < 10; c++ {
		j.mustPut(out, 0, c, 200, nil)
		for _, r := range j.others(0) {
			u := j.at(in[r], c-1, 200)
			again := j.at(in[r], c-1, 200)
			if again.Seq != u.Seq {
				j.Errorf("At(%d) twice: seq %d and %d", c-1, u.Seq, again.Seq)
			}
			if r%2 == 0 {
				in[r].Release(u.Seq)
			}
		}
	}
	for _, r := range j.others(0) {
		j.at(in[r], 9, 200)
		j.at(in[r], 8, 200)
		j.notAt(in[r], 7, 0)
		j.notAt(in[r], 10, 9)
		j.notAt(in[r], 11, 9)
		if got := j.ranks[r].Traffic(0).ReceivedMessages; got != 9 {
			j.Errorf("rank %d received %d messages, expected 9: asking again is not receiving again", r, got)
		}
		j.none(in[r]) // 9 is the newest, and was returned
	}
	for before, c := uint64(9), uint64(11); c < 40; before, c = c, c+1+c%4 {
		if err := out.Advance(c - 1); err != nil {
			j.Fatal(err)
		}
		j.mustPut(out, 0, c, 200, nil)
		for _, r := range j.others(0) {
			j.notAt(in[r], c-1, before)
			j.at(in[r], c, 200)
		}
	}
}

// lockstepSubset: who is left out has nothing at that clock, and what was there
// before is not taken for it. All readers hold, so that the most slots are
// needed.
func lockstepSubset(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 100, Mode: rdma.ByClock})
	others, last := j.others(0), map[int]uint64{}
	for c := uint64(1); c < 40; c++ {
		chosen := others[int(c)%len(others)]
		j.mustPut(out, 0, c, 100, []int{chosen})
		for _, r := range others {
			if r == chosen {
				j.at(in[r], c, 100)
				last[r] = c
			} else {
				j.notAt(in[r], c, last[r])
			}
		}
	}
}

// lockstepBarrier is bsp: publish, arrive, wait for all, fold exactly that clock
// of all. One barrier suffices because a box keeps two clocks.
func lockstepBarrier(j *job) {
	const steps, bytes = 60, 2048
	j.every(func(r int) error {
		t, s := j.ranks[r], rdma.Spec{Bytes: bytes, Mode: rdma.ByClock}
		out, err := t.Publish(j.ctx, "bsp", s, j.others(r))
		if err != nil {
			return err
		}
		ins, err := t.Subscribe(j.ctx, "bsp", s, j.others(r))
		if err != nil {
			return err
		}
		words, err := t.Words(j.ctx, "arrived", 1)
		if err != nil {
			return err
		}
		for c := uint64(1); c <= steps; c++ {
			if full, err := put(out, r, c, bytes, nil); full || err != nil {
				return fmt.Errorf("clock %d: full %v, error %v", c, full, err)
			}
			words.Set(0, c)
			if err := waitFor(j, t, func() (bool, error) { return arrived(words, j.others(r), c) }); err != nil {
				return err
			}
			for _, in := range ins {
				u, ok, err := in.At(c)
				if !ok || u.Clock != c || err != nil {
					return fmt.Errorf("clock %d of rank %d: ok %v, error %v", c, in.From(), ok, err)
				}
				if err := intact(u, in.From(), bytes); err != nil {
					return err
				}
				in.Release(u.Seq)
			}
		}
		return nil
	})
}

// lockstepClock: who sees a clock has the update of that clock, also where the
// sender is one ahead by then.
func lockstepClock(j *job) {
	const steps, bytes = 100, 16 << 10
	j.every(func(r int) error {
		t, s := j.ranks[r], rdma.Spec{Bytes: bytes, Mode: rdma.ByClock}
		out, err := t.Publish(j.ctx, "bsp", s, j.others(r))
		if err != nil {
			return err
		}
		ins, err := t.Subscribe(j.ctx, "bsp", s, j.others(r))
		if err != nil {
			return err
		}
		for c := uint64(1); c <= steps; c++ {
			if full, err := put(out, r, c, bytes, nil); full || err != nil {
				return fmt.Errorf("clock %d: full %v, error %v", c, full, err)
			}
			for _, in := range ins {
				if err := waitFor(j, t, func() (bool, error) {
					clock, err := in.Clock()
					if clock >= c {
						err = nil
					}
					return clock >= c, err
				}); err != nil {
					return err
				}
				if u, ok, err := in.At(c); !ok || u.Clock != c || err != nil {
					return fmt.Errorf("clock %d of rank %d: ok %v, error %v", c, in.From(), ok, err)
				}
			}
		}
		return nil
	})
}

// waitFor is Wait with a step that can fail.
func waitFor(j *job, t rdma.Transport, step func() (bool, error)) error {
	var failed error
	err := t.Wait(j.ctx, func() bool {
		var ok bool
		ok, failed = step()
		return ok || failed != nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func arrived(w rdma.Words, ranks []int, clock uint64) (bool, error) {
	for _, r := range ranks {
		v, err := w.Get(r, 0)
		if v < clock {
			return false, err
		}
	}
	return true, nil
}
