package tcp

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"malt/rdma/internal/mem"
)

// unsent is how much may wait in the kernel unsent: enough to keep a fast link
// busy, little enough that what is written last is the newest.
const unsent = 256 << 10

// conn is a TCP connection, or TLS over one.
type conn struct {
	net.Conn
	raw     *wire
	address string // that was dialled
	fd      int    // for the fork handler's table and for questions to the kernel; used under mu
	mu      sync.Mutex
	gone    bool
	acked   uint64    // by the peer's kernel, at the last look
	stuck   time.Time // since when it has acknowledged nothing of what is under way
	past    [moments]counted
	at      int // the latest of them

	vec     [2][]byte // what write and try hand to the kernel
	buffers net.Buffers

	// Of try.
	own     syscall.RawConn
	attempt func(fd uintptr) bool // made once
	tried   int
}

// newConn takes over an open connection; on failure it is closed.
func newConn(c *net.TCPConn, congestion string) (*conn, error) {
	w := &wire{TCPConn: c}
	n := &conn{Conn: w, raw: w, fd: -1, stuck: time.Now()}
	rc, err := c.SyscallConn()
	n.own, n.attempt = rc, n.once
	if err == nil {
		var failed error
		err = rc.Control(func(fd uintptr) {
			n.fd = int(fd)
			failed = mem.SetTCP(n.fd, unsent, congestion)
		})
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		c.Close()
		if congestion != "" {
			return nil, fmt.Errorf("setting up the connection, with congestion control %q: %w", congestion, err)
		}
		return nil, err
	}
	mem.Track(n.fd)
	return n, nil
}

// Close can be called by several goroutines; it ends reads and writes.
func (c *conn) Close() error {
	c.mu.Lock()
	if !c.gone {
		c.gone = true
		mem.Untrack(c.fd)
	}
	c.mu.Unlock()
	return c.raw.Close() // without TLS's goodbye, which could block
}

// reset is Close where nobody takes what has been written: nothing of the connection
// stays with the kernel, which would try for minutes.
func (c *conn) reset() {
	_ = c.raw.SetLinger(0)
	c.Close()
}

// state is what the kernel knows; not ok once closed. A host that is heard, and
// acknowledges nothing of what is under way to it, is silent as well: the way there
// may be cut, and the way back not.
func (c *conn) state() (s mem.Socket, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return s, false
	}
	s, err := mem.TCPState(c.fd)
	switch {
	case err != nil || s.Ended:
	case !s.Unacked || s.Acked != c.acked:
		c.acked, c.stuck = s.Acked, time.Now()
	default:
		s.Silence = max(s.Silence, time.Since(c.stuck))
	}
	c.count(&s)
	return s, err == nil
}

// wire counts what goes over a connection, below TLS.
type wire struct {
	*net.TCPConn
	sent, received atomic.Uint64
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.TCPConn.Read(b)
	w.received.Add(uint64(max(n, 0)))
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.TCPConn.Write(b)
	w.sent.Add(uint64(max(n, 0)))
	return n, err
}

// write sends a and then b, without copying them together where the kernel can
// gather.
func (c *conn) write(a, b []byte) error {
	if c.encrypted() {
		_, err := c.Conn.Write(a)
		if err == nil && len(b) > 0 {
			_, err = c.Conn.Write(b)
		}
		return err
	}
	if len(b) == 0 {
		_, err := c.raw.Write(a)
		return err
	}
	c.vec = [2][]byte{a, b}
	c.buffers = c.vec[:]
	n, err := c.buffers.WriteTo(c.raw.TCPConn)
	c.raw.sent.Add(uint64(n))
	c.vec = [2][]byte{}
	return err
}

// encrypted tells whether TLS lies over it.
func (c *conn) encrypted() bool { return c.Conn != net.Conn(c.raw) }

// try writes what goes at once of a and then b, and returns how much that was. What
// is wrong with the connection the next write will tell.
func (c *conn) try(a, b []byte) int {
	c.vec, c.tried = [2][]byte{a, b}, 0
	if len(a) > 0 {
		_ = c.own.Write(c.attempt)
	}
	c.vec = [2][]byte{}
	c.raw.sent.Add(uint64(c.tried))
	return c.tried
}

// look has in take what has come.
func (c *conn) look(in *input) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return false
	}
	return in.take(uintptr(c.fd))
}

func (c *conn) once(fd uintptr) bool {
	if n, err := mem.Write(int(fd), c.vec[:]); err == nil {
		c.tried = n
	}
	return true
}

// closeWrite says that nothing more comes.
func (c *conn) closeWrite() { _ = c.raw.CloseWrite() }
