package tcp

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

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
		syscall.ECONNRESET:   0,
		io.EOF:               0,
		io.ErrUnexpectedEOF:  0,
	} {
		l, c := lost(1, ""), &conn{raw: &wire{}}
		l.conn = c
		l.note(c, was)
		_ = l.finishConn(c, errors.Join(nil, why))
		if got := l.silent(); got < want || got > want+was/2 {
			t.Errorf("after %v silence is %v, expected %v", why, got, want)
		}
		l.note(c, 0) // by who has yet to find out that c has ended
		if l.unheard(c, time.Second, time.Second) || l.silent() < want {
			t.Errorf("after %v the connection that has ended counts", why)
		}
		if l.unheard(nil, time.Second, time.Hour) || l.silent() > want+was/2 {
			t.Errorf("after %v a stop of this process counts as silence of the other", why)
		}
		if dead := l.unheard(nil, 500*time.Millisecond, 500*time.Millisecond); dead != (want == was) {
			t.Errorf("after %v, and half a second, dead is %v at %v", why, dead, l.silent())
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
		until(func(silence time.Duration) bool { return silence >= 1600*time.Millisecond })
		time.Sleep(100 * time.Millisecond) // into the last attempt
		d.hear(t)
		until(func(silence time.Duration) bool { return silence == 0 })
		l.quit()
		if err := <-ended; !errors.Is(err, errClosing) {
			t.Errorf("rank %d: %v", own, err)
		}
	}
}
