package rdmatest

import (
	"errors"
	"strings"

	"malt/rdma"
)

var endCases = []testCase{
	{"leaving loses nothing", 2, leavingKeeps},
	{"transport closed", 2, transportClosed},
	{"aborted peer", 2, abortedPeer},
	{"aborted because of another", 3, abortedBecause},
	{"the first end is final", 2, firstEndFinal},
}

// leavingKeeps: each box as it was when its sender left, and the final clock.
func leavingKeeps(j *job) {
	specs := map[string]rdma.Spec{
		"newest":    {Bytes: 40},
		"lock-step": {Bytes: 40, Mode: rdma.ByClock},
		"queue":     {Bytes: 40, Mode: rdma.Queue(2)},
	}
	for name, s := range specs {
		out := j.publish(0, name, s, j.others(0)...)
		in := j.subscribe(1, name, s, 0)
		j.mustPut(out, 0, 1, 40, nil)
		j.mustPut(out, 0, 2, 40, nil)
		if err := out.Advance(8); err != nil {
			j.Fatal(err)
		}
		if err := out.Close(); err != nil {
			j.Fatal(err)
		}
		j.settle()
		if c, err := in.Clock(); c != 8 || !errors.Is(err, rdma.ErrLeft) {
			j.Errorf("%s: clock %d, error %v; expected 8 and ErrLeft", name, c, err)
		}
		if s.Mode.Depth() > 0 {
			j.take(in, 1, 40)
		}
		if s.Mode == rdma.ByClock {
			j.at(in, 1, 40)
		}
		j.take(in, 2, 40)
		j.none(in)
		if err := j.ranks[1].State(0); err != nil {
			j.Errorf("%s: closing a box ended its rank: %v", name, err)
		}
	}
}

// transportClosed: its boxes leave, and what was published can still be read.
func transportClosed(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 3000})
	j.mustPut(out, 0, 1, 3000, nil)
	held := j.take(in[1], 1, 3000)
	j.mustPut(out, 0, 2, 3000, nil)
	t := j.ranks[0]
	j.settle()
	if err := errors.Join(t.Close(), t.Close()); err != nil {
		j.Fatalf("closing twice: %v", err)
	}
	j.settle()
	if err := intact(held, 0, 3000); err != nil {
		j.Error(err)
	}
	for _, r := range j.others(0) {
		if c, err := in[r].Clock(); c != 2 || !errors.Is(err, rdma.ErrLeft) {
			j.Errorf("rank %d: clock %d, error %v", r, c, err)
		}
		j.take(in[r], 2, 3000)
		if err := j.ranks[r].State(0); !errors.Is(err, rdma.ErrLeft) {
			j.Errorf("rank %d: state of rank 0 is %v", r, err)
		}
	}
	if _, err := out.Begin(); !errors.Is(err, rdma.ErrClosed) {
		j.Errorf("Begin: %v", err)
	}
	for what, f := range map[string]func() error{
		"Publish":   func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, nil); return err },
		"Subscribe": func() error { _, err := t.Subscribe(j.ctx, "x", rdma.Spec{}, []int{1}); return err },
		"Words":     func() error { _, err := t.Words(j.ctx, "x", 1); return err },
		"Sub":       func() error { _, err := t.Sub(); return err },
		"Wait":      func() error { return t.Wait(j.ctx, func() bool { return false }) },
	} {
		if err := f(); !errors.Is(err, rdma.ErrClosed) {
			j.Errorf("%s: %v; expected ErrClosed", what, err)
		}
	}
}

// dead asserts that err is of dead rank 0, with its reason.
func (j *job) dead(what string, err error, reason string) {
	j.Helper()
	var dead *rdma.PeerError
	if !errors.As(err, &dead) || dead.Rank != 0 || !strings.Contains(dead.Error(), reason) {
		j.Errorf("%s: %v; expected the PeerError of rank 0 with %q", what, err, reason)
	}
}

// abortedPeer: who is dead published what it published.
func abortedPeer(j *job) {
	const reason = "out of patience"
	newest, in := j.star(rdma.Spec{Bytes: 40})
	queue := j.publish(0, "queue", rdma.Spec{Bytes: 40, Mode: rdma.Queue(3)}, 1)
	qin := j.subscribe(1, "queue", rdma.Spec{Bytes: 40, Mode: rdma.Queue(3)}, 0)
	for c := uint64(1); c <= 3; c++ {
		j.mustPut(newest, 0, c, 40, nil)
		j.mustPut(queue, 0, c, 40, nil)
	}
	j.settle()
	j.ranks[0].Abort(rdma.HasFailed(0, reason))
	j.settle()
	for _, r := range j.others(0) {
		c, err := in[r].Clock()
		j.dead("Clock", err, reason)
		if c != 3 {
			j.Errorf("rank %d: clock %d, expected 3", r, c)
		}
		j.take(in[r], 3, 40)
		j.none(in[r])
		j.dead("State", j.ranks[r].State(0), reason)
	}
	c, err := qin.Clock()
	j.dead("Clock", err, reason)
	if c != 3 {
		j.Errorf("clock %d, expected 3", c)
	}
	for c := uint64(1); c <= 3; c++ {
		j.take(qin, c, 40)
	}
	j.none(qin)
	_, err = j.ranks[1].Words(j.ctx, "words", 1)
	j.dead("Words", err, reason)
}

// abortedBecause: a rank that ends because of the death of another is dead of that
// one's; to that one itself, if it lives, it has failed. What is no death of a rank
// of the job counts as its own.
func abortedBecause(j *job) {
	j.ranks[1].Abort(&rdma.PeerError{Rank: 2, Kind: rdma.Unreachable, Err: errors.New("no answer")})
	j.settle()
	for teller, want := range []rdma.PeerError{{Rank: 2, Kind: rdma.Unreachable}, {}, {Rank: 1, Kind: rdma.Failed}} {
		var dead *rdma.PeerError
		if err := j.ranks[teller].State(1); teller != 1 && (!errors.As(err, &dead) || dead.Rank != want.Rank || dead.Kind != want.Kind || !strings.Contains(err.Error(), "no answer")) {
			j.Errorf("rank %d: %v; expected the death of rank %d of kind %d", teller, err, want.Rank, want.Kind)
		}
	}
	j.ranks[2].Abort(&rdma.PeerError{Rank: j.n(), Kind: rdma.Ended, Err: errors.New("nobody")})
	j.settle()
	var dead *rdma.PeerError
	if err := j.ranks[0].State(2); !errors.As(err, &dead) || dead.Rank != 2 || dead.Kind != rdma.Failed {
		j.Errorf("%v; expected that rank 2 has failed", err)
	}
}

// firstEndFinal: nobody rises from the dead, and nobody dies who has left.
func firstEndFinal(j *job) {
	j.ranks[0].Abort(rdma.HasFailed(0, "first"))
	j.ranks[0].Abort(rdma.HasFailed(0, "second"))
	if err := j.ranks[0].Close(); err != nil {
		j.Fatal(err)
	}
	j.settle()
	j.dead("aborted, then closed", j.ranks[1].State(0), "first")
	if err := j.ranks[1].Close(); err != nil {
		j.Fatal(err)
	}
	j.ranks[1].Abort(rdma.HasFailed(1, "too late"))
	j.settle()
	if err := j.ranks[j.n()-1].State(1); j.n() > 2 && !errors.Is(err, rdma.ErrLeft) {
		j.Errorf("closed, then aborted: %v", err)
	}
}
