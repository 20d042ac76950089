package box

import (
	"errors"
	"testing"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// chain is a box of one reader that is passed on, and the copy.
type chain struct {
	*rig
	relay   *Relay
	replica *Replica
	copied  *Inbox
}

func newChain(t testing.TB, s rdma.Spec) *chain {
	t.Helper()
	c := &chain{rig: newRig(t, s, 1)}
	var err error
	if c.relay, err = c.out.NewRelay(c.end(1), 0); err != nil {
		t.Fatal(err)
	}
	l, err := NewLayout(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := c.end(1)
	e.Replica = true
	e.Place = Place{Control: mem.Heap(l.ControlBytes, 64), Slot: l.Flat(mem.Heap(l.SlotBytes(), 64))}
	if c.replica, err = NewReplica(e, nil); err != nil {
		t.Fatal(err)
	}
	if c.copied, err = NewInbox(e, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// pass passes on what there is, and the acks back; it returns the seqs.
func (c *chain) pass() (seqs []uint64) {
	c.Helper()
	for {
		p := c.relay.Progress()
		h, b, mine, ok, err := c.relay.Next()
		if err != nil {
			c.Fatal(err)
		}
		if !ok {
			c.replica.Advance(p)
			if p.Left {
				c.replica.Leave(p)
			}
			c.relay.Ack(c.replica.Acked())
			return seqs
		}
		p.Published = c.relay.Progress().Published
		to, err := c.replica.Begin(&h, Anywhere)
		if err != nil {
			c.Fatal(err)
		}
		copy(to, b)
		c.relay.Done()
		c.replica.Commit(&h, mine, p)
		seqs = append(seqs, h.Seq)
		if c.relay.Sent() != h.Seq || c.replica.Landed() != h.Seq {
			c.Errorf("seq %d was passed on: sent %d, landed %d", h.Seq, c.relay.Sent(), c.replica.Landed())
		}
	}
}

func (c *chain) get(clock uint64) rdma.Update {
	c.Helper()
	u, ok, err := c.copied.Next()
	if err != nil || !ok || u.Clock != clock || len(u.Data) != 1 || u.Data[0] != byte(clock) {
		c.Fatalf("%+v, %v, %v; expected clock %d", u, ok, err, clock)
	}
	return u
}

// What is replaced before it was passed on is not; the count of all is.
func TestRelayNewest(t *testing.T) {
	c := newChain(t, rdma.Spec{Bytes: 64})
	for n := uint64(1); n <= 5; n++ {
		c.send(n, 1)
	}
	if s := c.pass(); len(s) != 1 || s[0] != 5 || c.copied.Published() != 5 {
		t.Errorf("passed on %v; %d published", s, c.copied.Published())
	}
	u := c.get(5)
	for n := uint64(6); n <= 20; n++ { // what the reader holds stays
		c.send(n, 1)
		c.pass()
	}
	if u.Data[0] != 5 {
		t.Error("what was held was overwritten")
	}
	c.copied.Release(c.get(20).Seq)
	c.pass()
	if a := c.out.Acked(1); a != 20 {
		t.Errorf("acked %d", a)
	}
	if err := c.out.Advance(30); err != nil {
		t.Fatal(err)
	}
	c.pass()
	if clock, err := c.copied.Clock(); clock != 30 || err != nil {
		t.Errorf("clock %d, %v", clock, err)
	}
	if err := errors.Join(c.out.Close(), c.copied.Close()); err != nil {
		t.Fatal(err)
	}
	c.pass()
	if c.out.Acked(1) != 0 || c.replica.Acked() != released { // of a closed outbox nothing is told
		t.Errorf("acked %d", c.replica.Acked())
	}
}

// To a reader that has closed its end nothing is sent any more.
func TestRelayReaderCloses(t *testing.T) {
	for _, s := range []rdma.Spec{{Bytes: 64}, {Bytes: 64, Mode: rdma.ByClock}, {Bytes: 64, Mode: rdma.Queue(4)}} {
		c := newChain(t, s)
		c.send(1, 1)
		if sent := c.pass(); len(sent) != 1 {
			t.Errorf("%+v: passed on %v, expected the first", s, sent)
		}
		if err := c.copied.Close(); err != nil {
			t.Fatal(err)
		}
		c.pass()
		c.send(2, 1)
		if sent := c.pass(); len(sent) > 0 {
			t.Errorf("%+v: passed on %v to a reader that has closed its end", s, sent)
		}
	}
}

func TestRelayLockstep(t *testing.T) {
	c := newChain(t, rdma.Spec{Bytes: 64, Mode: rdma.ByClock})
	c.send(1, 1)
	c.send(2, 1)
	if s := c.pass(); len(s) != 2 || s[0] != 1 || s[1] != 2 {
		t.Errorf("passed on %v", s)
	}
	for clock := uint64(1); clock <= 2; clock++ {
		if u, ok, err := c.copied.At(clock); !ok || err != nil || u.Data[0] != byte(clock) {
			t.Errorf("clock %d: %+v, %v, %v", clock, u, ok, err)
		}
	}
}

// A queue gives everything, no more than the reader has room for, and what may
// be overwritten, or was not meant for the reader, without payload.
func TestRelayQueue(t *testing.T) {
	c := newChain(t, rdma.Spec{Bytes: 64, Mode: rdma.Queue(2)})
	c.send(1, 1)
	c.send(2, []int{}...)
	if s := c.pass(); len(s) != 2 {
		t.Errorf("passed on %v", s)
	}
	c.copied.Release(c.get(1).Seq)
	u, ok, err := c.copied.Next()
	if !ok || err != nil || u.Data != nil || u.Seq != 2 {
		t.Errorf("not meant for it: %+v, %v, %v", u, ok, err)
	}
	c.pass()
	c.send(3, 1)
	c.out.Excuse(1)
	c.send(4, 1)
	c.send(5, 1)
	if s := c.pass(); len(s) != 1 || s[0] != 3 { // no room for more: 2 is not released
		t.Errorf("passed on %v", s)
	}
	if u, ok, err := c.copied.Next(); !ok || err != nil || u.Data != nil || u.Seq != 3 {
		t.Errorf("excused: %+v, %v, %v", u, ok, err)
	}
	c.copied.Release(4) // ahead of what has arrived
	if s := c.pass(); len(s) != 0 {
		t.Errorf("passed on %v before the ack was", s)
	}
	if s := c.pass(); len(s) != 1 || s[0] != 5 {
		t.Errorf("passed on %v; 4 was released", s)
	}
	c.get(5)
}

// A reader that returns skips what is lost, nothing else; who has looked for it
// before looks again.
func TestRelayReturns(t *testing.T) {
	c := newChain(t, rdma.Spec{Bytes: 64, Mode: rdma.Queue(1)})
	free := func(want bool) {
		t.Helper()
		b, err := c.out.Begin()
		if (b != nil) != want || err != nil {
			t.Errorf("a slot is free: %v, expected %v (%v)", b != nil, want, err)
		}
	}
	c.send(1, 1)
	c.out.Excuse(1)
	c.send(2, 1)
	c.out.Excuse(1) // and does not need it yet
	if lost, head := c.relay.Return(); lost != 1 || head != 2 || !c.relay.Lost(1) || c.relay.Lost(2) {
		t.Errorf("it returns behind update %d and needs up to %d, expected 1 and 2", lost, head)
	}
	c.replica.Skip(1)
	c.relay.Ack(1)
	free(false)
	c.out.Excuse(1) // it has looked before
	free(false)
	if s := c.pass(); len(s) != 1 || s[0] != 2 {
		t.Errorf("passed on %v", s)
	}
	c.get(2)
	c.out.Excuse(1) // it is away again
	free(true)
	if !c.relay.Lost(2) {
		t.Error("the second excuse was not taken")
	}
}

// A new connection begins behind what has landed.
func TestRelayResumes(t *testing.T) {
	for _, s := range []rdma.Spec{{Bytes: 64}, {Bytes: 64, Mode: rdma.ByClock}, {Bytes: 64, Mode: rdma.Queue(2)}} {
		c := newChain(t, s)
		c.send(1, 1)
		c.send(2, 1)
		if s.Mode == rdma.Newest {
			c.replica.landed = 1 // it had come before 2
		} else {
			c.relay.sent = 0
		}
		if _, _, _, ok, err := c.relay.Next(); !ok || err != nil { // and is lost
			t.Fatal(ok, err)
		}
		if err := c.relay.Resume(c.replica.Landed()); err != nil {
			t.Fatal(err)
		}
		want := 2 - int(c.replica.Landed())
		if got := c.pass(); len(got) != want || got[want-1] != 2 {
			t.Errorf("%+v: passed on %v", s, got)
		}
		if err := c.relay.Resume(3); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("resumed behind what was never published: %v", err)
		}
	}
}

// Nothing that comes is believed.
func TestReplicaRefuses(t *testing.T) {
	c := newChain(t, rdma.Spec{Bytes: 64, Mode: rdma.Queue(2)})
	c.send(1, 1)
	c.pass()
	good := c.replica.end.Header()
	good.Seq, good.Bytes = 2, 64
	for what, change := range map[string]func(h *Header){
		"a gap":          func(h *Header) { h.Seq = 3 },
		"again":          func(h *Header) { h.Seq = 1 },
		"beyond count":   func(h *Header) { h.Seq = 1 << 60 },
		"too long":       func(h *Header) { h.Bytes = 65 },
		"other member":   func(h *Header) { h.Member++ },
		"other format":   func(h *Header) { h.Format++ },
		"other view":     func(h *Header) { h.Generation++ },
		"negative bytes": func(h *Header) { h.Bytes = ^uint64(0) },
	} {
		h := good
		change(&h)
		if _, err := c.replica.Begin(&h, Anywhere); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b, err := c.replica.Begin(&good, Anywhere); err != nil || len(b) != 64 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestRelayDoesNotAllocate(t *testing.T) {
	for name, s := range modes {
		c := newChain(t, s)
		c.quiet = true
		clock := uint64(0)
		one := []int{1}
		if n := testing.AllocsPerRun(100, func() {
			clock++
			if _, err := c.out.Begin(); err != nil {
				t.Fatal(err)
			}
			if err := c.out.Commit(8, rdma.Stamp{Clock: clock}, one); err != nil {
				t.Fatal(err)
			}
			p := c.relay.Progress()
			h, _, mine, ok, err := c.relay.Next()
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			if _, err := c.replica.Begin(&h, Anywhere); err != nil {
				t.Fatal(err)
			}
			c.replica.Commit(&h, mine, p)
			c.copied.Release(h.Seq)
			c.relay.Ack(h.Seq)
		}); n != 0 {
			t.Errorf("%s: %v allocations per update", name, n)
		}
	}
}
