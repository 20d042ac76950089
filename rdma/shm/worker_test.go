package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

func TestMain(m *testing.M) {
	fleet.Main(m, map[string]fleet.Role{"worker": work, "glutton": devour, "crowd": crowd, "pacer": pacer})
}

// work is what a rank's process does: it exchanges updates with all others until
// it is told to finish, or one of them is dead. The first argument is the mode.
// Sleeps have no end, so that every wake-up must come from a ring.
//
//	newest   scatters and gathers, and waits for nobody
//	bsp      waits for every rank's word at each step
//	queue    waits for every reader's release, and for every sender's update
//
// Every payload is one number over and over, so that a torn one shows.
func work(r *fleet.Rank) error {
	before := warm(r)
	t, err := Open(context.Background(), rendezvous.Config{Rank: r.Rank, Size: r.Size, Store: r.Store})
	if err != nil {
		return err
	}
	t.policy = asleep
	w := &worker{Rank: r, t: t, mode: r.Args[0]}
	if err := w.open(); err != nil {
		return err
	}
	r.Say("ready")
	err = w.run()
	var dead *rdma.PeerError
	if errors.As(err, &dead) {
		r.Say("dead %d", dead.Rank)
	} else if err != nil {
		r.Say("failed %v", err)
	}
	r.Say("closed %v %q", t.Close(), fleet.Leaks(before))
	return nil
}

// warm opens and closes a transport, so that what Go itself keeps open from then
// on is there, and returns what is held.
func warm(r *fleet.Rank) []string {
	if t, err := Open(context.Background(), rendezvous.Config{Size: 1, Store: r.Store + fmt.Sprintf("f%x", r.Rank)}); err == nil {
		_ = t.Close()
	}
	return fleet.Holdings()
}

type worker struct {
	*fleet.Rank
	t     rdma.Transport
	mode  string
	out   rdma.Outbox
	ins   []rdma.Inbox
	words rdma.Words
	clock uint64
	last  []uint64 // newest clock got, by place in ins
}

// payload is what an update of clock c looks like. Lengths go up and down, past
// what fits a page.
func length(c uint64) int { return int(8 + c*808%40_000/8*8) }

const longest = 40_008

func (w *worker) open() (err error) {
	var others []int
	for rank := range w.Size {
		if rank != w.Rank.Rank {
			others = append(others, rank)
		}
	}
	s := rdma.Spec{Bytes: longest}
	if w.mode == "queue" {
		s.Mode = rdma.Queue(1)
	}
	ctx := context.Background()
	if w.out, err = w.t.Publish(ctx, "box", s, others); err != nil {
		return err
	}
	if w.ins, err = w.t.Subscribe(ctx, "box", s, others); err != nil {
		return err
	}
	w.last = make([]uint64, len(w.ins))
	w.words, err = w.t.Words(ctx, "words", 1)
	return err
}

// errFinish: the parent said so.
var errFinish = errors.New("finish")

func (w *worker) run() error {
	for {
		if err := w.step(); err == errFinish {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// heard obeys the parent.
func (w *worker) heard() error {
	switch line, ok := w.Heard(); {
	case ok && line == "finish":
		return errFinish
	case ok && line == "clock":
		w.Say("clock %d", w.clock)
	}
	return nil
}

// wait runs f, which must not block, until it is done or fails.
func (w *worker) wait(f func() (bool, error)) error {
	var err error
	ctx := context.Background()
	if w.Rank.Rank%2 == 1 {
		ctx = sleeper{ctx}
	}
	werr := w.t.Wait(ctx, func() (done bool) { done, err = f(); return done || err != nil })
	return errors.Join(err, werr)
}

// sleeper sleeps in place of the transport, without end, too.
type sleeper struct{ context.Context }

func (sleeper) Sleep(word *uint32, seen uint32) {
	mem.FutexWait((*mem.Word)(unsafe.Pointer(word)), uint64(seen), 0)
}

func (w *worker) step() error {
	if err := w.heard(); err != nil {
		return err
	}
	w.clock++
	if err := w.scatter(); err != nil {
		return err
	}
	if w.mode == "bsp" {
		w.words.Set(0, w.clock)
	}
	for i, in := range w.ins {
		err := w.wait(func() (bool, error) { return w.gather(i, in) })
		if err != nil {
			return err
		}
	}
	return nil
}

// gone passes on that a peer is dead; one that has left is no error.
func gone(err error) error {
	if errors.Is(err, rdma.ErrLeft) {
		return nil
	}
	return err
}

func (w *worker) scatter() error {
	var b []byte
	err := w.wait(func() (_ bool, err error) {
		for _, in := range w.ins {
			if err := gone(w.t.State(in.From())); err != nil {
				return false, err
			}
		}
		b, err = w.out.Begin()
		return b != nil, err
	})
	if err != nil {
		return err
	}
	n := length(w.clock)
	mark := w.clock<<8 | uint64(w.Rank.Rank)
	for at := 0; at < n; at += 8 {
		binary.LittleEndian.PutUint64(b[at:], mark)
	}
	return w.out.Commit(n, rdma.Stamp{Clock: w.clock, Weight: 1}, nil)
}

// gather takes what sender i has sent and checks it. done says that the mode
// does not wait for that sender any longer in this step.
func (w *worker) gather(i int, in rdma.Inbox) (done bool, err error) {
	from := in.From()
	state := w.t.State(from) // before the look: behind a final state nothing comes
	u, ok, err := in.Next()
	if err != nil {
		return false, err
	}
	if ok {
		if err := w.check(i, from, u); err != nil {
			return false, err
		}
		in.Release(u.Seq)
	}
	if err := gone(state); err != nil {
		return false, err
	}
	switch w.mode {
	case "newest":
		return true, nil
	case "queue":
		return ok || state != nil, nil
	}
	c, err := w.words.Get(from, 0)
	return c >= w.clock || state != nil, gone(err)
}

// check finds torn, repeated and lost updates.
func (w *worker) check(i, from int, u rdma.Update) error {
	if len(u.Data) != length(u.Clock) || u.Seq != u.Clock {
		return fmt.Errorf("clock %d, seq %d from %d with %d bytes, expected %d", u.Clock, u.Seq, from, len(u.Data), length(u.Clock))
	}
	for at := 0; at < len(u.Data); at += 8 {
		if m := binary.LittleEndian.Uint64(u.Data[at:]); m != u.Clock<<8|uint64(from) {
			return fmt.Errorf("torn: clock %d from %d has %#x at %d", u.Clock, from, m, at)
		}
	}
	if u.Clock <= w.last[i] || w.mode == "queue" && u.Clock != w.last[i]+1 {
		return fmt.Errorf("clock %d from %d after %d", u.Clock, from, w.last[i])
	}
	w.last[i] = u.Clock
	return nil
}
