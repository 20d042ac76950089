package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// A collective call that a rank has given up comes about for nobody, also where
// that rank had sent its part: it may have gone on since, and others with it.
func TestNobodyBeginsWhatWasGivenUp(t *testing.T) {
	over := make(chan struct{})
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 0 {
			defer close(over)
			return wantErr(w.Barrier(routetest.Tried()), libmalt.ErrTimeout)
		}
		<-over
		return wantErr(w.Barrier(ctx), libmalt.ErrLeft)
	})
}

// hooked is the transport of a rank that calls hook each time an Inbox from rank
// has had nothing.
type hooked struct {
	rdma.Transport
	from int
	hook *func()
}

func (h hooked) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	ins, err := h.Transport.Subscribe(ctx, name, s, senders)
	for i := range ins {
		if ins[i].From() == h.from {
			ins[i] = hookedIn{ins[i], h.hook}
		}
	}
	return ins, err
}

type hookedIn struct {
	rdma.Inbox
	hook *func()
}

func (i hookedIn) Next() (rdma.Update, bool, error) {
	u, ok, err := i.Inbox.Next()
	if hook := *i.hook; !ok && hook != nil {
		*i.hook = nil
		hook()
	}
	return u, ok, err
}

// While a gather looks at one rank after the other, one that was away comes back
// and sends, and another one sends after that: who has the second update has the
// first.
func TestGatherLooksAtOneMoment(t *testing.T) {
	var hook func()
	ts := inmem.New(3)
	ts[2] = hooked{ts[2], 0, &hook}
	gone, looked, first, second, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	check(t, run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=notify-ack")
		if err != nil {
			return err
		}
		scatter := func() error {
			_, err := v.Scatter(ctx, nil, 1)
			return err
		}
		switch w.Rank() {
		case 0:
			defer func() { <-done }()
			barrier := routetest.Hold(w.Barrier)
			waits, _ := barrier.Step()
			close(gone)
			<-looked
			err := errors.Join(wantErr(waits, libmalt.ErrTimeout), wantErr(barrier.GiveUp(), libmalt.ErrTimeout), scatter())
			close(first)
			return err
		case 1:
			defer func() { <-done }()
			<-first
			err := scatter()
			close(second)
			return err
		}
		defer close(done)
		<-gone
		hook = func() {
			close(looked)
			<-second
		}
		if err := scatter(); err != nil {
			return err
		}
		us, err := v.Begin(ctx)
		if err != nil {
			return err
		}
		if len(us) != 2 {
			err = fmt.Errorf("%d updates, expected those of ranks 0 and 1", len(us))
		}
		return errors.Join(err, v.End(true))
	}))
}
