package tcp

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/rdma"
)

// deaf is an address of this machine at which nothing is answered, as if its host
// were away, until it hears.
type deaf struct {
	net.Listener
	waiting []net.Conn
}

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
	d := &deaf{Listener: l}
	t.Cleanup(func() {
		d.Close()
		for _, c := range d.waiting {
			c.Close()
		}
	})
	for {
		c, err := net.DialTimeout("tcp", d.Addr().String(), 100*time.Millisecond)
		if err != nil {
			return d
		}
		d.waiting = append(d.waiting, c)
	}
}

// hear lets everybody in, and returns when somebody has come besides those who
// fill the queue.
func (d *deaf) hear(t *testing.T) {
	t.Helper()
	_ = d.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(2 * time.Second))
	for range len(d.waiting) + 1 {
		c, err := d.Accept()
		if err != nil {
			t.Fatalf("nobody comes any more: %v", err)
		}
		defer c.Close()
	}
}

// lost is the link of a rank whose connection has broken, to a peer that was at an
// address.
func lost(own int, at string) *link {
	c := Config{Rank: own, Size: 2, Job: "job", Token: []byte("token"), Unreachable: 2 * time.Second}
	l := newLink(&rank{cfg: c, self: newSelf(&c), ends: make([]end, 2)}, 1-own)
	l.to = []string{at}
	close(l.up)
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
		l, c := lost(1, ""), &conn{raw: &wire{}}
		l.conn = c
		l.note(c, was)
		_ = l.finishConn(c, errors.Join(nil, why))
		if got := l.silent(); got < want || got > want+was/2 {
			t.Errorf("after %v silence is %v, expected %v", why, got, want)
		}
		l.note(c, 0) // by who has yet to find out that c has ended
		if l.unheard(c, nil, time.Second, time.Second) || l.silent() < want {
			t.Errorf("after %v the connection that has ended counts", why)
		}
		if l.unheard(nil, nil, time.Second, time.Hour) || l.silent() > want+was/2 {
			t.Errorf("after %v a stop of this process counts as silence of the other", why)
		}
		if dead := l.unheard(nil, nil, 500*time.Millisecond, 500*time.Millisecond); dead != (want == was) {
			t.Errorf("after %v, and half a second, dead is %v at %v", why, dead, l.silent())
		}
	}
	for _, why := range []error{syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF} {
		l, c := lost(1, ""), &conn{raw: &wire{}}
		l.conn = c
		l.note(c, time.Second)
		if _ = l.finishConn(c, why); l.silent() != 0 {
			t.Errorf("after %v of a host that is not in doubt silence is %v", why, l.silent())
		}
	}
	// A connection from the first moment of which the host is silent counts for itself.
	l, c := lost(1, ""), &conn{raw: &wire{}}
	l.silence = was
	l.begin(c)
	if l.silent() != 0 {
		t.Errorf("a new connection begins with %v", l.silent())
	}
}

// A host that answers nothing is away when it has been silent for so long in all,
// whoever dials.
func TestUnreachableFromTheLastSign(t *testing.T) {
	d := newDeaf(t)
	for own := range 2 {
		l := lost(own, d.Addr().String())
		l.silence = 1700 * time.Millisecond
		began := time.Now()
		_, err := l.connect(false)
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || !strings.Contains(err.Error(), "has not answered for 2s") {
			t.Errorf("rank %d: %v", own, err)
		}
		if took := time.Since(began); took < 200*time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("rank %d: after %v, expected 0.3 s", own, took)
		}
	}
}

// That it has many addresses, of which each is given its time, changes nothing.
func TestUnreachableAtManyAddresses(t *testing.T) {
	d := newDeaf(t)
	l := lost(1, d.Addr().String())
	l.to = slices.Repeat(l.to, 6)
	l.silence = 1800 * time.Millisecond
	ended := make(chan error, 1)
	go func() {
		_, err := l.connect(false)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.As(err, new(*rdma.PeerError)) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Errorf("it still waits, after a silence of %v", l.silent())
		l.quit()
		<-ended
	}
}

// A host that is back just in time is alive: it is asked up to the last moment.
func TestBackInTime(t *testing.T) {
	for own := range 2 {
		d := newDeaf(t)
		l := lost(own, d.Addr().String())
		ended := make(chan error, 1)
		go func() {
			_, err := l.connect(false)
			ended <- err
		}()
		until := func(reached func(time.Duration) bool) {
			for !reached(l.silent()) {
				select {
				case err := <-ended:
					t.Fatalf("rank %d: %v", own, err)
				case <-time.After(time.Millisecond):
				}
			}
		}
		until(func(silence time.Duration) bool { return silence >= 1500*time.Millisecond })
		time.Sleep(100 * time.Millisecond) // into the last attempt
		d.hear(t)
		until(func(silence time.Duration) bool { return silence == 0 })
		l.quit()
		if err := <-ended; !errors.Is(err, errClosing) {
			t.Errorf("rank %d: %v", own, err)
		}
	}
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

// untilHeard waits until nothing counts as silence any more; where this ends otherwise,
// the peer was given up.
func untilHeard(t *testing.T, l *link, ended <-chan error) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); l.silent() != 0; {
		select {
		case err := <-ended:
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
		l := lost(own, stopped(t))
		l.silence = almost(l)
		ended := make(chan error, 1)
		go func() {
			_, err := l.connect(false)
			ended <- err
		}()
		untilHeard(t, l, ended)
		l.quit()
		if err := <-ended; !errors.Is(err, errClosing) {
			t.Errorf("rank %d: %v", own, err)
		}
	}
}

// The same of who still has a connection, over which nothing comes: it is kept.
func TestSilentConnectionOfOneWhoIsThere(t *testing.T) {
	l := lost(1, stopped(t))
	c, err := l.open(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.conn = c
	mute(t, c)
	for limit := time.Now().Add(5 * time.Second); !c.silentFor(l.suspicious()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("what is not acknowledged does not count as silence")
		}
	}
	l.silence = almost(l)
	ended := make(chan error, 1)
	go func() {
		l.doubt(c)
		ended <- l.cause
	}()
	untilHeard(t, l, ended)
	l.quit()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// mute has the kernel drop what comes for c.
func mute(t *testing.T, c *conn) {
	t.Helper()
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	err := unix.SetsockoptSockFprog(c.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	if err != nil {
		t.Fatal(err)
	}
}
