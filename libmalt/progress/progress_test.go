package progress

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// until waits for what another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(fleet.Patience); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(limit) {
			t.Fatal(what)
		}
	}
}

// counted is a transport that counts the Subs that are open.
type counted struct {
	rdma.Transport
	open *atomic.Int32
	fail bool
}

type sub struct {
	rdma.Transport
	open *atomic.Int32
}

func (c counted) Sub() (rdma.Transport, error) {
	if c.fail {
		return nil, errors.New("no doorbell is free")
	}
	s, err := c.Transport.Sub()
	if err == nil {
		c.open.Add(1)
		s = sub{s, c.open}
	}
	return s, err
}

func (s sub) Close() error {
	s.open.Add(-1)
	return s.Transport.Close()
}

// TestUpdatesArePolled: what comes is taken while the rank itself does nothing.
func TestUpdatesArePolled(t *testing.T) {
	ts := inmem.New(2)
	l := New(ts[0])
	var inbox atomic.Pointer[rdma.Inbox]
	var sum atomic.Int64
	poll := func() bool {
		in := inbox.Load()
		if in == nil {
			return false
		}
		u, ok, err := (*in).Next()
		if err != nil {
			t.Error(err)
		}
		if ok {
			sum.Add(int64(u.Data[0]))
			(*in).Release(u.Seq)
		}
		return ok
	}
	tr, remove, err := l.Add(poll)
	if err != nil {
		t.Fatal(err)
	}
	spec := rdma.Spec{Bytes: 1, Mode: rdma.Queue(4)}
	out, err := ts[1].Publish(t.Context(), "box", spec, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	in, err := tr.Subscribe(t.Context(), "box", spec, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	inbox.Store(&in[0])
	for n := range 100 {
		err := ts[1].Wait(t.Context(), func() bool {
			b, err := out.Begin()
			if err != nil || b == nil {
				return err != nil
			}
			b[0] = byte(n)
			return out.Commit(1, rdma.Stamp{}, nil) == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "updates are left", func() bool { return sum.Load() == 99*100/2 })
	if err := remove(); err != nil {
		t.Fatal(err)
	}
}

// TestLifeOfTheLoop: it runs from the first poll to the last, and a poll that was removed
// is never called again, though others are.
func TestLifeOfTheLoop(t *testing.T) {
	open := &atomic.Int32{}
	l := New(counted{inmem.New(1)[0], open, false})
	var a, b atomic.Int64
	counter := func(n *atomic.Int64) func() bool { return func() bool { n.Add(1); return false } }
	for range 20 {
		tr, removeA, err := l.Add(counter(&a))
		if err != nil {
			t.Fatal(err)
		}
		_, removeB, err := l.Add(counter(&b))
		if err != nil {
			t.Fatal(err)
		}
		if open.Load() != 1 {
			t.Fatalf("%d Subs are open, want 1", open.Load())
		}
		if err := removeA(); err != nil {
			t.Fatal(err)
		}
		before, seen := a.Load(), b.Load()
		until(t, "the other poll is not called", func() bool { tr.Wake(); return b.Load() > seen+10 })
		if a.Load() != before {
			t.Fatal("a poll is called after it was removed")
		}
		if err := errors.Join(removeB(), removeA(), removeB()); err != nil {
			t.Fatal(err)
		}
		if open.Load() != 0 {
			t.Fatal("the Sub is open after the last poll")
		}
	}
}

// TestNoDoorbell: without one nothing begins, and the next Add may succeed.
func TestNoDoorbell(t *testing.T) {
	tr := counted{inmem.New(1)[0], &atomic.Int32{}, true}
	l := New(tr)
	if _, _, err := l.Add(func() bool { return false }); err == nil {
		t.Fatal("a poll was added")
	}
	tr.fail = false
	l.parent = tr
	_, remove, err := l.Add(func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
}
