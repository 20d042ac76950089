package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/tcp"
	"malt/rdma/wire"
)

func TestMain(m *testing.M) {
	fleet.Main(m, map[string]fleet.Role{"worker": work, "placing": placingRank})
}

// work is what a rank's process does: it tells where it listens, is told where
// the others do, and exchanges updates with all of them until it is told to
// finish, or one of them is dead. The first argument is the mode.
//
//	newest   scatters and gathers, and waits for nobody
//	bsp      waits for every rank's word at each step, and then finds its update
//	queue    waits for every reader's release, and for every sender's update
//	idle     does nothing
//
// With a third argument the job goes on when a rank dies, and each rank counts how often
// it doubts another one.
func work(r *fleet.Rank) error {
	wire, err := meet(r, r.Args[1])
	if err != nil {
		return err
	}
	before := fleet.Holdings()
	c := Config{Rank: r.Rank, Size: r.Size, Unreachable: patient}
	if len(r.Args) > 2 {
		c.Survives, c.Unreachable = true, patient*3/4 // doubted well within a stop, and not because the machine is busy
	}
	t, err := Open(context.Background(), c, wire)
	if err != nil {
		return err
	}
	w := &worker{Rank: r, t: t, mode: r.Args[0], last: make([]uint64, r.Size)}
	if err = w.open(); err != nil {
		return err
	}
	if c.Survives {
		t.Survive(&members{})
		ended := make(chan struct{})
		defer close(ended)
		go w.doubt(t, ended)
	}
	r.Say("ready")
	for err == nil {
		err = w.step()
	}
	var dead *rdma.PeerError
	if errors.As(err, &dead) {
		r.Say("dead %d", dead.Rank)
	} else if err != errFinish {
		r.Say("failed %v", err)
	}
	leaks := t.Close()
	for range 100 { // those that were just ending
		if len(fleet.Leaks(before)) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.Say("closed %v %q", leaks, fleet.Leaks(before))
	return nil
}

// meet tells where this rank listens, and is told where the others do.
func meet(r *fleet.Rank, host string) (wire.Wire, error) {
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return nil, err
	}
	r.Say("at %s", l.Addr())
	var peers [][]string
	for _, address := range strings.Fields(r.Hear()) {
		peers = append(peers, []string{address})
	}
	return tcp.New(TCP{Job: r.Store, Token: []byte("token"), Listeners: []net.Listener{l}, Peers: peers}), nil
}

// patient is for how long a host may be silent here: the least that is allowed.
const patient = 2 * time.Second

var errFinish = errors.New("finish")

type worker struct {
	*fleet.Rank
	t     rdma.Transport
	mode  string
	out   rdma.Outbox
	ins   []rdma.Inbox
	words rdma.Words
	clock uint64
	last  []uint64 // newest clock got, by rank

	doubts atomic.Int64
}

// doubt counts how often another rank is doubted.
func (w *worker) doubt(t *Transport, ended <-chan struct{}) {
	doubted := make([]bool, w.Size)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		for peer, was := range doubted {
			doubted[peer] = t.Doubted(peer) && t.State(peer) == nil
			if doubted[peer] && !was {
				w.doubts.Add(1)
			}
		}
	}
}

func (w *worker) open() (err error) {
	var others []int
	for rank := range w.Size {
		if rank != w.Rank.Rank {
			others = append(others, rank)
		}
	}
	s := rdma.Spec{Bytes: largest, Mode: map[string]rdma.Mode{"bsp": rdma.ByClock, "queue": rdma.Queue(1)}[w.mode]}
	ctx := context.Background()
	if w.out, err = w.t.Publish(ctx, "box", s, others); err != nil {
		return err
	}
	if w.ins, err = w.t.Subscribe(ctx, "box", s, others); err != nil {
		return err
	}
	w.words, err = w.t.Words(ctx, "words", 1)
	return err
}

func (w *worker) wait(f func() (bool, error)) error {
	var err error
	werr := w.t.Wait(context.Background(), func() bool {
		var done bool
		done, err = f()
		return done || err != nil
	})
	return errors.Join(err, werr)
}

func (w *worker) step() error {
	line, ok := "", true
	if w.mode == "idle" {
		line = w.Hear()
	} else {
		line, ok = w.Heard()
	}
	switch {
	case ok && line == "finish":
		return errFinish
	case ok && line == "clock":
		w.Say("clock %d", w.clock)
	case ok && line == "doubts":
		w.Say("doubts %d", w.doubts.Load())
	}
	w.clock++
	if w.mode == "idle" {
		return nil
	}
	err := w.wait(func() (bool, error) {
		for _, in := range w.ins {
			if err := alive(w.t.State(in.From())); err != nil {
				return false, err
			}
		}
		b, err := w.out.Begin()
		if b == nil || err != nil {
			return false, err
		}
		fill(b[:length(w.clock)], w.Rank.Rank, w.clock)
		return true, w.out.Commit(length(w.clock), rdma.Stamp{Clock: w.clock}, nil)
	})
	if err != nil {
		return err
	}
	w.words.Set(0, w.clock)
	for _, in := range w.ins {
		if err := w.wait(func() (bool, error) { return w.gather(in) }); err != nil {
			return err
		}
	}
	return nil
}

// alive passes on that a peer is dead; one that has left is no error.
func alive(err error) error {
	if errors.Is(err, rdma.ErrLeft) {
		return nil
	}
	return err
}

// gather takes what a sender has sent. done says that the mode does not wait for
// that sender any longer in this step.
func (w *worker) gather(in rdma.Inbox) (done bool, err error) {
	from := in.From()
	state := w.t.State(from) // before the look: behind a final state nothing comes
	var u rdma.Update
	var ok bool
	if w.mode == "bsp" {
		v, gone := w.words.Get(from, 0)
		if v < w.clock {
			return gone != nil, alive(gone)
		}
		if u, ok, err = in.At(w.clock); err == nil && u.Clock != w.clock {
			err = fmt.Errorf("the word of rank %d is at %d, and its update is not here", from, v)
		}
	} else {
		u, ok, err = in.Next()
	}
	if err != nil {
		return false, err
	}
	if ok {
		if u.Clock <= w.last[from] || w.mode != "newest" && u.Clock != w.last[from]+1 {
			return false, fmt.Errorf("clock %d of rank %d after %d", u.Clock, from, w.last[from])
		}
		w.last[from] = u.Clock
		if err := intact(u, from); err != nil {
			return false, err
		}
		in.Release(u.Seq)
	}
	return ok || w.mode == "newest" || state != nil, alive(state)
}

// workers starts n ranks at work.
func workers(t *testing.T, n int, mode, host string, more ...string) []*fleet.Process {
	t.Helper()
	return introduced(fleet.Start(t, "worker", n, append([]string{mode, host}, more...)...))
}

// introduced has ranks meet.
func introduced(f []*fleet.Process) []*fleet.Process {
	addresses := make([]string, len(f))
	for i, p := range f {
		addresses[i] = p.Expect("at")
	}
	for _, p := range f {
		p.Tell(strings.Join(addresses, " "))
	}
	for _, p := range f {
		p.Expect("ready")
	}
	return f
}

func leave(t *testing.T, f []*fleet.Process) {
	t.Helper()
	for _, i := range rand.Perm(len(f)) {
		f[i].Tell("finish")
		f[i].Expect("closed <nil> []")
		f[i].End()
	}
}

var modes = []string{"newest", "bsp", "queue"}

// A rank that is killed at any moment is known to be dead, by name, within a
// second, whatever the others were doing.
func TestKilled(t *testing.T) {
	for _, mode := range modes {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s/%d", mode, n), func(t *testing.T) {
				f := workers(t, n, mode, "127.0.0.1")
				victim := rand.IntN(n)
				time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // any moment
				fleet.Kill(t, f, victim)
			})
		}
	}
}

func clockOf(t *testing.T, p *fleet.Process) int {
	t.Helper()
	p.Tell("clock")
	c, err := strconv.Atoi(p.Expect("clock"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// While SIGSTOP holds a rank, for longer than a host may be silent, the others go
// on in newest mode and wait in the others; it is never taken for dead.
func TestG4StoppedIsNotDead(t *testing.T) {
	host := "[::1]"
	if l, err := net.Listen("tcp", host+":0"); err != nil {
		t.Logf("without IPv6: %v", err)
		host = "127.0.0.1"
	} else {
		l.Close()
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := workers(t, 3, mode, host)
			f[1].Signal(syscall.SIGSTOP)
			end := time.Now().Add(patient + time.Second)
			for mode == "newest" && time.Now().Before(end) {
				for _, p := range []*fleet.Process{f[0], f[2]} {
					for c := clockOf(t, p); clockOf(t, p) < c+10; {
					}
				}
			}
			if line, ok := f[0].Line(time.Until(end)); ok {
				t.Errorf("rank 0 said %q", line)
			}
			f[1].Signal(syscall.SIGCONT)
			for c := clockOf(t, f[1]); clockOf(t, f[1]) < c+10; {
			}
			leave(t, f)
		})
	}
}

// A rank that SIGSTOP holds is not doubted, whether it is idle or has room for nothing, since
// its kernel answers; and for the time in which it could hear nothing, it doubts nobody.
func TestStoppedIsNotDoubted(t *testing.T) {
	for _, mode := range []string{"newest", "queue", "idle"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := workers(t, 3, mode, "127.0.0.1", "survive")
			for range 2 {
				f[1].Signal(syscall.SIGSTOP)
				if line, ok := f[0].Line(patient); ok {
					t.Errorf("rank 0 said %q", line)
				}
				f[1].Signal(syscall.SIGCONT)
				for c := clockOf(t, f[1]); clockOf(t, f[1]) < c+10; {
				}
			}
			for rank, p := range f {
				p.Tell("doubts")
				if n := p.Expect("doubts"); n != "0" {
					t.Errorf("rank %d has doubted others %s times", rank, n)
				}
			}
			leave(t, f)
		})
	}
}

func TestLeaving(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) { leave(t, workers(t, 4, mode, "localhost")) })
	}
}
