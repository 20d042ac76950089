package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/tcp"
	"malt/rdma/wire"
)

// deaf is an address of this machine at which nothing is answered, as if its host
// were away, until it hears.
type deaf struct{ net.Listener }

// newDeaf fills the queue of a listener: what comes then its kernel drops.
func newDeaf(t *testing.T) *deaf {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	waiting, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { waiting.Close() })
	until(t, "the queue is full", func() bool {
		info := tcpInfo(t, l.(*net.TCPListener))
		return info.Unacked > info.Sacked // of a listener: how many wait, and how many may
	})
	return &deaf{l}
}

// hear lets everybody in, until it is closed.
func (d *deaf) hear() {
	for {
		c, err := d.Accept()
		if err != nil {
			return
		}
		defer c.Close()
	}
}

// lost is the link of a rank whose connection has broken, to a peer that was at an
// address.
func lost(t *testing.T, own int, at ...string) *link {
	t.Helper()
	peers := make([][]string, 2)
	peers[1-own] = at
	r, err := newRank(Config{Rank: own, Size: 2, Unreachable: 2 * time.Second},
		tcp.New(TCP{Job: "job", Token: []byte("token"), Listeners: []net.Listener{listenAt(t, "127.0.0.1:0")}, Peers: peers}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.wire.Close)
	l := r.links[1-own]
	l.state = broken
	return l
}

func (l *link) silent() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silence
}

// Silence is that of the host, however its connections end: what was counted
// before goes on counting, unless the peer is heard.
func TestSilenceIsCountedOn(t *testing.T) {
	const was = 1500 * time.Millisecond
	aborted := errors.Join(io.EOF, syscall.ECONNABORTED, syscall.EPIPE) // of reading and writing
	for why, want := range map[error]time.Duration{
		aborted:              was,
		syscall.ECONNABORTED: was, // reset from here
		syscall.ETIMEDOUT:    was,
		net.ErrClosed:        was,
		// Of a host that is in doubt: what comes from there says nothing of the way to it.
		syscall.ECONNRESET:  was,
		io.EOF:              was,
		io.ErrUnexpectedEOF: was,
	} {
		l, c := lost(t, 1, ""), newConn(piped{})
		l.session.Store(&session{conn: c})
		began := time.Now()
		l.note(c, was)
		_ = l.finishConn(c, errors.Join(nil, why))
		if got := l.silent(); got < want || got > want+time.Since(began) {
			t.Errorf("after %v silence is %v, expected %v", why, got, want)
		}
		l.note(c, 0) // by who has yet to find out that c has ended
		if l.unheard(c, nil, time.Second, time.Second) || l.silent() < want {
			t.Errorf("after %v the connection that has ended counts", why)
		}
		if l.unheard(nil, nil, time.Second, time.Hour) || l.silent() > want+time.Since(began) {
			t.Errorf("after %v a stop of this process counts as silence of the other", why)
		}
		if dead := l.unheard(nil, nil, 500*time.Millisecond, 500*time.Millisecond); dead != (want == was) {
			t.Errorf("after %v, and half a second, dead is %v at %v", why, dead, l.silent())
		}
	}
	for _, why := range []error{syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF} {
		l, c := lost(t, 1, ""), newConn(piped{})
		l.session.Store(&session{conn: c})
		l.note(c, time.Second)
		if _ = l.finishConn(c, why); l.silent() != 0 {
			t.Errorf("after %v of a host that is not in doubt silence is %v", why, l.silent())
		}
	}
	// A connection from the first moment of which the host is silent counts for itself.
	l, c := lost(t, 1, ""), newConn(piped{})
	l.silence = was
	l.newSession(c)
	if l.silent() != 0 {
		t.Errorf("a new connection begins with %v", l.silent())
	}
}

// A host that answers nothing is away when it has been silent for so long in all,
// whoever dials.
func TestUnreachableFromTheLastSign(t *testing.T) {
	d := newDeaf(t)
	for own := range 2 {
		l := lost(t, own, d.Addr().String())
		l.silence = 1700 * time.Millisecond
		began, stopwatch := time.Now(), fleet.Stopwatch()
		_, err := l.connect()
		took, ran := time.Since(began), stopwatch()
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || !strings.Contains(err.Error(), "has not answered for 2s") {
			t.Errorf("rank %d: %v", own, err)
		}
		if took < 200*time.Millisecond || ran > 1500*time.Millisecond {
			t.Errorf("rank %d: after %v, in which a thread ran for %v, expected 0.3 s", own, took, ran)
		}
	}
}

// That it has many addresses, of which each is given its time, changes nothing.
func TestUnreachableAtManyAddresses(t *testing.T) {
	d := newDeaf(t)
	l := lost(t, 1, slices.Repeat([]string{d.Addr().String()}, 6)...)
	l.silence = 1800 * time.Millisecond
	ended := make(chan error, 1)
	go func() {
		_, err := l.connect()
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.As(err, new(*rdma.PeerError)) {
			t.Error(err)
		}
	case <-time.After(fleet.Patience):
		t.Errorf("it still waits, after a silence of %v", l.silent())
		l.quit()
		<-ended
	}
}

// A host that is back just in time is alive: it is asked up to the last moment.
func TestBackInTime(t *testing.T) {
	for own := range 2 {
		for try := 1; !backInTime(t, own); try++ {
			if try == 10 { // this process may be late, too, where others have its processors
				t.Fatalf("rank %d has given up a host that was back, %d times", own, try)
			}
		}
	}
}

// backInTime has a host hear again when it is nearly given up, and tells whether it is
// noticed.
func backInTime(t *testing.T, own int) bool {
	d := newDeaf(t)
	l := lost(t, own, d.Addr().String())
	ended := make(chan error, 1)
	go func() {
		_, err := l.connect()
		ended <- err
	}()
	until := func(reached func(time.Duration) bool) error {
		for !reached(l.silent()) {
			select {
			case err := <-ended:
				return err
			case <-time.After(time.Millisecond):
			}
		}
		return nil
	}
	err := until(func(silence time.Duration) bool { return silence >= 1500*time.Millisecond })
	if err == nil {
		time.Sleep(100 * time.Millisecond) // into the last attempt
		go d.hear()
		err = until(func(silence time.Duration) bool { return silence == 0 })
	}
	if err == nil {
		l.quit()
		if err := <-ended; !errors.Is(err, errClosing) {
			t.Fatalf("rank %d: %v", own, err)
		}
		return true
	}
	if !strings.Contains(err.Error(), "has not answered for 2s") {
		t.Fatalf("rank %d: %v", own, err)
	}
	return false
}

// stopped is an address at which the kernel lets everybody in, and nobody says
// anything, as that of a process that is stopped.
func stopped(t *testing.T) string {
	t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr().String()
}

// untilHeard waits until nothing counts as silence any more; where this ends with an error before,
// the peer was given up.
func untilHeard(t *testing.T, l *link, ended chan error) {
	t.Helper()
	for limit := time.Now().Add(fleet.Patience); l.silent() != 0; {
		select {
		case err := <-ended:
			if err == nil {
				ended <- nil // for who asks next
				return
			}
			t.Fatalf("rank %d is given up, though its kernel answers: %v", l.peer, err)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(limit) {
			t.Fatalf("rank %d, whose kernel answers, counts as silent for %v", l.peer, l.silent())
		}
	}
}

// almost is a silence that is nearly enough: one attempt that is not answered in time
// is the last.
func almost(l *link) time.Duration { return l.rank.cfg.silence() - 300*time.Millisecond }

// Whose kernel lets a connection in is there, though its process is stopped: who has
// lost the connection, and tries to make or to hear of another one, does not count
// that as silence.
func TestWhoIsStoppedIsNotSilent(t *testing.T) {
	for own := range 2 {
		l := lost(t, own, stopped(t))
		l.silence = almost(l)
		ended := make(chan error, 1)
		go func() {
			_, err := l.connect()
			ended <- err
		}()
		untilHeard(t, l, ended)
		l.quit()
		if err := <-ended; !errors.Is(err, errClosing) {
			t.Errorf("rank %d: %v", own, err)
		}
	}
}

// The same of who still has a connection, of which nothing arrives: another one is made.
func TestSilentConnectionOfOneWhoIsThere(t *testing.T) {
	l := lost(t, 1, stopped(t))
	c, err := l.open(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.session.Store(&session{conn: c})
	mute(t, c)
	for limit := time.Now().Add(fleet.Patience); !c.silentFor(l.suspicious()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("what is not acknowledged does not count as silence")
		}
	}
	l.silence = almost(l)
	ended := make(chan error, 1)
	go func() {
		l.doubt(c)
		ended <- l.ctx.Err()
	}()
	untilHeard(t, l, ended)
	select {
	case err := <-ended:
		if _, open := c.state(); open || err != nil {
			t.Errorf("the connection is open: %v, and the link ends with %v", open, err)
		}
	case <-time.After(fleet.Patience):
		t.Error("it keeps a connection of which nothing arrives")
		l.quit()
		<-ended
	}
}

// Who counts as dead, and has not heard the last word, learns it when it connects again, whether it dials or is dialled.
func TestWhoCountsAsDeadLearnsIt(t *testing.T) {
	for told := range 2 {
		stops := openRanks(t, 2, nil)
		survives, members := surviving(t, 2, nil)
		for _, all := range [][]*Transport{stops, survives} {
			l := all[1-told].links[told]
			l.condemned.Store(l.unreachable())
			l.stop()
			other := all[told]
			until(t, "it learns that", func() bool { return other.State(1-told) != nil })
			var dead *rdma.PeerError
			if err := other.State(1 - told); !errors.As(err, &dead) || dead.Rank != 1-told || dead.Kind != rdma.Unreachable || !errors.As(err, new(*rdma.ApartError)) || !strings.Contains(err.Error(), "MALT_UNREACHABLE") || other.Gone(1-told) || other.Said(1-told) {
				t.Errorf("rank %d: %v", told, err)
			}
			closeAll(t, all)
		}
		if by := members[told].refused(); len(by) > 0 {
			t.Errorf("rank %d is expelled by %v", told, by)
		}
	}
}

// Where the way is cut in one direction, the end that hears nothing tells the other one,
// which would wait for as long again, and both name each other.
func TestCutOneWay(t *testing.T) {
	for deaf := range 2 {
		t.Run(fmt.Sprintf("to rank %d", deaf), func(t *testing.T) {
			t.Parallel()
			var other detour
			all := openRanks(t, 2, func(c *config) {
				c.Unreachable = time.Hour // so that it does not look for itself, and make the connection again
				if c.Rank == deaf {
					c.Unreachable = 2 * time.Second
					other.Wire = tcp.New(c.TCP)
					c.wire = &other
				}
			})
			at := newDeaf(t).Addr().String()
			other.to.Store(&TCP{Peers: [][]string{{at}, {at}}})
			until(t, "nothing is under way, which would keep back a last word", func() bool {
				for _, l := range []*link{all[0].links[1], all[1].links[0]} {
					if s := l.session.Load(); s == nil || !s.resumed.Load() {
						return false // the other end has yet to say where it is
					}
				}
				for _, l := range []*link{all[0].links[1], all[1].links[0]} {
					if s, ok := l.current().state(); !ok || s.Unacked {
						return false
					}
				}
				return true
			})
			mute(t, all[deaf].links[1-deaf].current())
			for rank, want := range map[int]string{1 - deaf: "ranks 0 and 1 cannot reach each other: rank " + fmt.Sprint(deaf), deaf: "its host has not answered for 2s"} {
				ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
				err := all[rank].Wait(ctx, func() bool { return all[rank].State(1-rank) != nil })
				stop()
				var dead *rdma.PeerError
				state := all[rank].State(1 - rank)
				if err != nil || !errors.As(state, &dead) || dead.Rank != 1-rank || dead.Kind != rdma.Unreachable || !strings.Contains(state.Error(), want) {
					t.Errorf("rank %d: %v, %v; expected rank %d, unreachable, and %q", rank, err, state, 1-rank, want)
				}
			}
			closeAll(t, all)
		})
	}
}

// detour is a Wire that leads elsewhere from a moment on.
type detour struct {
	wire.Wire
	to    atomic.Pointer[TCP]
	dials atomic.Int64
}

func (d *detour) Dial(ctx context.Context, peer int, given, apart time.Duration) (wire.Conn, error) {
	d.dials.Add(1)
	if to := d.to.Load(); to != nil {
		return tcp.New(*to).Dial(ctx, peer, given, apart)
	}
	return d.Wire.Dial(ctx, peer, given, apart)
}

// mute has the kernel drop what comes for c, until hear is called.
func mute(t *testing.T, c *conn) (hear func()) {
	t.Helper()
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]}); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = raw.Control(func(fd uintptr) { // nothing where c is closed by now
			if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
				t.Error(err)
			}
		})
	}
}
