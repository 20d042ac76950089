package rdmatest

import (
	"context"
	"errors"
	"strings"

	"malt/rdma"
)

var createCases = []testCase{
	{"publish without readers", 1, publishAlone},
	{"publish refuses", 1, publishRefuses},
	{"a name is free again", 2, nameAgain},
	{"subscribe waits", 2, subscribeWaits},
	{"subscribe given up", 2, subscribeGivenUp},
	{"subscribe needs to be among the readers", 3, subscribeStranger},
	{"specs differ", 2, specsDiffer},
	{"sender is gone", 3, senderGone},
}

func publishAlone(j *job) {
	for _, s := range []rdma.Spec{{Bytes: 16}, {Bytes: 16, Mode: rdma.ByClock}, {Bytes: 16, Mode: rdma.Queue(1)}} {
		out, err := j.ranks[0].Publish(j.ctx, "alone", s, nil)
		if err != nil {
			j.Fatalf("%+v: %v", s, err)
		}
		for c := uint64(1); c < 10; c++ {
			j.mustPut(out, 0, c, 16, nil)
		}
		if err := out.Close(); err != nil {
			j.Fatal(err)
		}
	}
}

func publishRefuses(j *job) {
	t := j.ranks[0]
	for what, f := range map[string]func() error{
		"a reader that does not exist":  func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, []int{j.n()}); return err },
		"a negative reader":             func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, []int{-1}); return err },
		"a reader named twice":          func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, []int{1, 1}); return err },
		"a box to oneself":              func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, []int{0}); return err },
		"a box to oneself among others": func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{}, []int{1, 0}); return err },
		"a box from oneself":            func() error { _, err := t.Subscribe(j.ctx, "x", rdma.Spec{}, []int{0}); return err },
		"a negative payload":            func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{Bytes: -1}, nil); return err },
		"a queue of no depth":           func() error { _, err := t.Publish(j.ctx, "x", rdma.Spec{Mode: rdma.Queue(0)}, nil); return err },
		"a sender that does not exist":  func() error { _, err := t.Subscribe(j.ctx, "x", rdma.Spec{}, []int{j.n()}); return err },
		"a sender named twice":          func() error { _, err := t.Subscribe(j.ctx, "x", rdma.Spec{}, []int{1, 1}); return err },
	} {
		if f() == nil {
			j.Errorf("%s was accepted", what)
		}
	}
	j.publish(0, "taken", rdma.Spec{})
	if _, err := t.Publish(j.ctx, "taken", rdma.Spec{}, nil); err == nil {
		j.Error("a second box of the same name was accepted")
	}
	// What was refused has left nothing behind.
	j.publish(0, "x", rdma.Spec{}, j.others(0)...)
}

// nameAgain: closing frees the name, and who has had the old box gets the new.
func nameAgain(j *job) {
	s := rdma.Spec{Bytes: 8}
	for c := uint64(1); c <= 3; c++ {
		out, in := j.star(s)
		j.mustPut(out, 0, c, 8, nil)
		for _, r := range j.others(0) {
			j.take(in[r], c, 8)
			if err := in[r].Close(); err != nil {
				j.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			j.Fatal(err)
		}
	}
}

// subscribeWaits: nobody has published when it is called.
func subscribeWaits(j *job) {
	s := rdma.Spec{Bytes: 8}
	j.every(func(r int) error {
		next := (r + 1) % j.n()
		if r != 0 {
			if _, err := j.ranks[r].Publish(j.ctx, "ring", s, []int{next}); err != nil {
				return err
			}
		}
		in, err := j.ranks[r].Subscribe(j.ctx, "ring", s, []int{(r + j.n() - 1) % j.n()})
		if err != nil {
			return err
		}
		if r == 0 { // only now does rank 1 get what it waits for
			if _, err := j.ranks[r].Publish(j.ctx, "ring", s, []int{next}); err != nil {
				return err
			}
		}
		return in[0].Close()
	})
}

// subscribeGivenUp: the error says why and for whom, and nothing was taken.
func subscribeGivenUp(j *job) {
	s := rdma.Spec{Bytes: 8}
	last := j.n() - 1
	for r := 1; r < last; r++ {
		j.publish(r, "late", s, 0)
	}
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	in, err := j.ranks[0].Subscribe(ctx, "late", s, j.others(0))
	if !errors.Is(err, context.Canceled) || in != nil {
		j.Fatalf("Subscribe: %v, error %v; expected context.Canceled", in, err)
	}
	if !strings.Contains(err.Error(), string(rune('0'+last))) {
		j.Errorf("%q does not name rank %d, which it waited for", err, last)
	}
	j.publish(last, "late", s, 0)
	in, err = j.ranks[0].Subscribe(j.ctx, "late", s, j.others(0))
	if err != nil || len(in) != last {
		j.Fatalf("again: %d inboxes, error %v", len(in), err)
	}
	for i, in := range in {
		if in.From() != i+1 {
			j.Errorf("inbox %d is from rank %d", i, in.From())
		}
	}
}

// subscribeStranger: a box without this rank among its readers is not its box.
func subscribeStranger(j *job) {
	s := rdma.Spec{Bytes: 8}
	j.publish(0, "others", s, 1)
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	if _, err := j.ranks[2].Subscribe(ctx, "others", s, []int{0}); !errors.Is(err, context.Canceled) {
		j.Errorf("a rank that is not a reader: error %v; expected it to wait", err)
	}
	j.subscribe(1, "others", s, 0)
}

func specsDiffer(j *job) {
	base := rdma.Spec{Bytes: 8, About: "float32"}
	for what, s := range map[string]rdma.Spec{
		"bytes":    {Bytes: 9, About: "float32"},
		"depth":    {Bytes: 8, About: "float32", Mode: rdma.Queue(1)},
		"lockstep": {Bytes: 8, About: "float32", Mode: rdma.ByClock},
		"about":    {Bytes: 8, About: "float64"},
	} {
		j.publish(0, what, base, 1)
		_, err := j.ranks[1].Subscribe(j.ctx, what, s, []int{0})
		var m *rdma.MismatchError
		if !errors.As(err, &m) {
			j.Errorf("%s differs: error %v, expected a MismatchError", what, err)
			continue
		}
		if m.Rank != 0 || m.Name != what || m.Ours == m.Theirs || m.Ours == "" || m.Theirs == "" {
			j.Errorf("%s differs: %+v", what, *m)
		}
		j.subscribe(1, what, base, 0)
	}
}

// senderGone: one that has left or is dead will not publish any more.
func senderGone(j *job) {
	s := rdma.Spec{Bytes: 8}
	if err := j.ranks[1].Close(); err != nil {
		j.Fatal(err)
	}
	if _, err := j.ranks[0].Subscribe(j.ctx, "x", s, []int{1}); !errors.Is(err, rdma.ErrLeft) {
		j.Errorf("sender has left: error %v", err)
	}
	j.ranks[2].Abort(rdma.HasFailed(2, "a reason"))
	_, err := j.ranks[0].Subscribe(j.ctx, "x", s, []int{2})
	var dead *rdma.PeerError
	if !errors.As(err, &dead) || dead.Rank != 2 || !strings.Contains(err.Error(), "a reason") {
		j.Errorf("sender is dead: error %v", err)
	}
}
