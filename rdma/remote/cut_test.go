package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
)

// proxy stands between a rank and those that dial it, and cuts connections after
// some bytes, wherever in a frame that is.
type proxy struct {
	net.Listener
	to   string
	each func() int64   // how many bytes the next connection carries
	next atomic.Bool    // the next byte ends the connection in its place
	ends [2]atomic.Bool // when the far end (0), or the dialler (1), ends a connection, it is reset
	cuts atomic.Int64
	all  sync.WaitGroup
}

func newProxy(t testing.TB, to string, each func() int64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, each: each}
	p.all.Go(p.run)
	t.Cleanup(func() { l.Close(); p.all.Wait() })
	return p
}

func (p *proxy) run() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.carry(c.(*net.TCPConn)) })
	}
}

func (p *proxy) carry(c *net.TCPConn) {
	d, err := net.Dial("tcp", p.to)
	if err != nil {
		c.Close()
		return
	}
	var left atomic.Int64
	left.Store(p.each())
	var once sync.Once
	end := func(reset bool) {
		once.Do(func() {
			if reset {
				p.cuts.Add(1)
				_ = c.SetLinger(0)
				_ = d.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
			d.Close()
		})
	}
	pipe := func(to, from net.Conn) {
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			if n > 0 && p.next.CompareAndSwap(true, false) {
				left.Store(0)
			}
			n = int(min(int64(n), max(left.Add(-int64(n))+int64(n), 0)))
			if _, failed := to.Write(b[:n]); failed != nil || left.Load() <= 0 {
				end(left.Load() <= 0)
				return
			}
			if err == io.EOF {
				if from == c && p.ends[1].Load() || from == d && p.ends[0].Load() {
					end(true)
					return
				}
				_ = to.(*net.TCPConn).CloseWrite()
				return
			}
			if err != nil {
				end(false)
				return
			}
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(d, c) })
	both.Go(func() { pipe(c, d) })
	both.Wait()
	end(false)
}

// largest update, of several frames; its length goes up and down with the clock.
const largest = 5*chunk + 24

func length(clock uint64) int { return int(8 + clock*7919*8%largest/8*8) }

func fill(b []byte, sender int, clock uint64) {
	if len(b) == 0 {
		return
	}
	binary.LittleEndian.PutUint64(b, clock<<8|uint64(sender))
	for n := 8; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func intact(u rdma.Update, sender int) error {
	if len(u.Data) != length(u.Clock) {
		return fmt.Errorf("clock %d of rank %d has %d bytes, expected %d", u.Clock, sender, len(u.Data), length(u.Clock))
	}
	for at := 0; at < len(u.Data); at += 8 {
		if m := binary.LittleEndian.Uint64(u.Data[at:]); m != u.Clock<<8|uint64(sender) {
			return fmt.Errorf("clock %d of rank %d is torn: %#x at %d", u.Clock, sender, m, at)
		}
	}
	return nil
}

// exchange has a rank send updates to the other of two, in a mode, and take the
// other's, with every check that can be made of what comes; as many as told, and
// more until it is enough, if that is asked for.
func exchange(t *Transport, mode string, updates uint64, enough func() bool) error {
	ctx, other := context.Background(), 1-t.Rank()
	s := rdma.Spec{Bytes: largest, Mode: map[string]rdma.Mode{"newest": rdma.Newest, "lock-step": rdma.ByClock, "queue": rdma.Queue(3)}[mode]}
	out, err := t.Publish(ctx, "box", s, []int{other})
	if err != nil {
		return err
	}
	ins, err := t.Subscribe(ctx, "box", s, []int{other})
	if err != nil {
		return err
	}
	words, err := t.Words(ctx, "arrived", 2)
	if err != nil {
		return err
	}
	var last, clock uint64 // of the other
	take := func(u rdma.Update, ok bool, err error) error {
		c, gone := ins[0].Clock()
		switch {
		case err != nil:
			return err
		case c < clock:
			return fmt.Errorf("the clock went back from %d to %d", clock, c)
		case gone != nil:
			return gone
		}
		clock = c
		if !ok {
			return nil
		}
		if u.Clock <= last || mode != "newest" && u.Clock != last+1 || u.Seq != u.Clock {
			return fmt.Errorf("clock %d, seq %d after clock %d: lost or twice", u.Clock, u.Seq, last)
		}
		last = u.Clock
		if err := intact(u, other); err != nil {
			return err
		}
		ins[0].Release(u.Seq)
		return nil
	}
	takeAll := func() error {
		for {
			before := last
			if err := take(ins[0].Next()); err != nil || last == before {
				return err
			}
		}
	}
	wait := func(step func() (bool, error)) error {
		var failed error
		err := t.Wait(ctx, func() (ok bool) { ok, failed = step(); return ok || failed != nil })
		if failed != nil {
			return failed
		}
		return err
	}
	// In lock-step rank 1 goes on as long as rank 0 does.
	more := func(c uint64) (yes bool, err error) {
		if c <= updates || t.Rank() == 0 || mode != "lock-step" {
			return c <= updates || enough != nil && !enough(), nil
		}
		err = wait(func() (bool, error) {
			at, err := words.Get(0, 0)
			end, gone := words.Get(0, 1)
			yes = at >= c && (end == 0 || end >= c)
			return yes || end != 0, errors.Join(err, gone)
		})
		return yes, err
	}
	c := uint64(1)
	for ; ; c++ {
		if yes, err := more(c); err != nil || !yes {
			if err != nil {
				return err
			}
			break
		}
		err := wait(func() (bool, error) {
			b, err := out.Begin()
			if b == nil || err != nil {
				if err == nil {
					err = takeAll()
				}
				return false, err
			}
			fill(b[:length(c)], t.Rank(), c)
			return true, out.Commit(length(c), rdma.Stamp{Clock: c}, nil)
		})
		if err != nil {
			return err
		}
		if words.Set(0, c); mode != "lock-step" {
			if err := takeAll(); err != nil {
				return err
			}
			continue
		}
		err = wait(func() (bool, error) {
			v, err := words.Get(other, 0)
			return v >= c, err
		})
		if err != nil {
			return err
		}
		if u, ok, err := ins[0].At(c); err != nil || !ok || u.Clock != c {
			return fmt.Errorf("clock %d: its word is here and the update is not: %v", c, err)
		} else if err := take(u, ok, err); err != nil {
			return err
		}
	}
	// The last of newest, all of a queue.
	words.Set(1, c-1)
	if err := wait(func() (bool, error) {
		if mode == "lock-step" {
			return true, nil
		}
		sent, gone := words.Get(other, 1)
		if err := errors.Join(takeAll(), gone); err != nil {
			return false, err
		}
		return sent != 0 && last == sent, nil
	}); err != nil {
		return err
	}
	words.Set(0, math.MaxUint64)
	return wait(func() (bool, error) {
		v, err := words.Get(other, 0)
		return v == math.MaxUint64, err
	})
}

// Connections that are reset, at any byte, are made again: nothing is lost in a
// queue or in lock-step, nothing comes twice, and no clock goes back.
func TestG2G3CutConnections(t *testing.T) {
	for mode, updates := range map[string]uint64{"newest": 100, "lock-step": 60, "queue": 60} {
		for _, what := range []string{"anywhere", "between frames"} {
			t.Run(mode+"/"+what, func(t *testing.T) {
				seed := rand.Uint64()
				random := rand.New(rand.NewPCG(seed, 0))
				var mu sync.Mutex
				each := func() int64 {
					mu.Lock()
					defer mu.Unlock()
					return 1000 + random.Int64N(2<<20)
				}
				if what == "between frames" {
					each = func() int64 { return 1 << 60 }
				}
				configs := configure(t, 2)
				p := newProxy(t, configs[0].Peers[0][0], each)
				configs[1].Peers = [][]string{{p.Addr().String()}, configs[1].Peers[1]}
				all := openConfigs(t, configs)
				cuts, stop := p.cuts.Load, func() {}
				if what == "between frames" {
					cuts, stop = breakUp(all, random)
				}
				done := make(chan error, 2)
				for _, r := range all {
					go func() { done <- exchange(r, mode, updates, func() bool { return cuts() >= 5 }) }()
				}
				for range 2 {
					if err := <-done; err != nil {
						t.Errorf("seed %d: %v", seed, err)
						t.FailNow()
					}
				}
				stop()
				if n := cuts(); n < 3 {
					t.Errorf("only %d cuts", n)
				} else {
					t.Logf("%d cuts", n)
				}
				closeAll(t, all)
			})
		}
	}
}

// idle tells whether a link that is connected has nothing to send.
func idle(l *link) bool {
	s := l.session.Load()
	return s != nil && s.resumed.Load() && s.idle.Load()
}

// breakUp ends the connection again and again while nothing is on its way.
func breakUp(all []*Transport, random *rand.Rand) (cuts func() int64, stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	l := all[1].links[0]
	go func() {
		defer close(ended)
		for last := (*session)(nil); ; n.Add(1) {
			frames := uint64(random.IntN(50))
			for quiet := false; !quiet; {
				s := l.session.Load()
				_, landed, _, _ := all[0].Frames(1)
				quiet = s != nil && s != last && s.posted.Load() >= frames && (s.posted.Load() == landed || idle(l))
				select {
				case <-over:
					return
				default:
					runtime.Gosched()
				}
			}
			last = l.session.Load() // before: another one comes at once
			l.breakUp(nil)
		}
	}()
	return n.Load, func() { close(over); <-ended }
}

// A rank whose last word is lost with the connection says it again: it has left,
// and is not dead. It does so whether it dials or is dialled.
func TestCutWhileLeaving(t *testing.T) {
	for leaver := range 2 {
		t.Run(fmt.Sprint(leaver), func(t *testing.T) {
			configs := configure(t, 2)
			p := newProxy(t, configs[0].Peers[0][0], func() int64 { return 1 << 60 })
			configs[1].Peers = [][]string{{p.Addr().String()}, configs[1].Peers[1]}
			all := openConfigs(t, configs)
			stays := all[1-leaver]
			for r := range all { // nothing else is on its way
				l := all[r].links[1-r]
				for !idle(l) {
					runtime.Gosched()
				}
			}
			p.next.Store(true)
			if err := all[leaver].Close(); err != nil {
				t.Error(err)
			}
			ctx, stop := context.WithTimeout(context.Background(), fleet.Patience)
			defer stop()
			err := stays.Wait(ctx, func() bool { return stays.State(leaver) != nil })
			if err = errors.Join(err, stays.State(leaver)); !errors.Is(err, rdma.ErrLeft) || p.cuts.Load() != 1 {
				t.Errorf("%v after %d cuts, want %v after one", err, p.cuts.Load(), rdma.ErrLeft)
			}
			if err := stays.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A rank whose connection is reset when the peer has read that it leaves, and
// before it knows that, finds out: it does not wait for a connection that the peer,
// which stays, will never make.
func TestResetAfterLeaving(t *testing.T) {
	for leaver := range 2 {
		t.Run(fmt.Sprint(leaver), func(t *testing.T) {
			configs := configure(t, 2)
			p := newProxy(t, configs[0].Peers[0][0], func() int64 { return 1 << 60 })
			configs[1].Peers = [][]string{{p.Addr().String()}, configs[1].Peers[1]}
			for rank := range configs {
				configs[rank].Unreachable = time.Hour // for which Close would wait
			}
			all := openConfigs(t, configs)
			p.ends[1-leaver].Store(true)
			closed := make(chan error, 1)
			go func() { closed <- all[leaver].Close() }()
			select {
			case err := <-closed:
				if err != nil || p.cuts.Load() == 0 {
					t.Errorf("%v after %d cuts", err, p.cuts.Load())
				}
			case <-time.After(fleet.Patience):
				t.Fatal("Close waits")
			}
			stays := all[1-leaver]
			ctx, stop := context.WithTimeout(context.Background(), fleet.Patience)
			defer stop()
			err := stays.Wait(ctx, func() bool { return stays.State(leaver) != nil })
			if err = errors.Join(err, stays.State(leaver)); !errors.Is(err, rdma.ErrLeft) {
				t.Errorf("the leaver is %v", err)
			}
			closeAll(t, []*Transport{stays})
		})
	}
}

// A link ends while what has come waits for rank.mu: whoever has that does not wait for the link.
func TestALinkEndsWhileSomebodyLands(t *testing.T) {
	for name, end := range map[string]func(*link){"stop": (*link).stop, "part": (*link).part} {
		t.Run(name, func(t *testing.T) {
			all := openRanks(t, 2, nil)
			l, r := all[0].links[1], all[0].rank
			c := l.current()
			for ; c == nil; c = l.current() {
				time.Sleep(time.Millisecond)
			}
			r.mu.Lock()
			_, before := c.Carried()
			if _, err := all[1].Publish(t.Context(), "box", rdma.Spec{Bytes: 8}, []int{0}); err != nil {
				t.Fatal(err)
			}
			for received := before; received == before; _, received = c.Carried() {
				time.Sleep(time.Millisecond)
			}
			ended, free := make(chan struct{}), make(chan struct{})
			go func() { end(l); close(ended) }()
			go func() {
				for !l.is(stopping) {
					time.Sleep(time.Millisecond)
				}
				close(free)
			}()
			select {
			case <-free:
			case <-time.After(fleet.Patience):
				t.Error("the link is locked")
			}
			r.mu.Unlock()
			<-ended
			for _, rank := range all {
				_ = rank.Close()
			}
		})
	}
}
