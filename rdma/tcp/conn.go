package tcp

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
)

// unsent is how much may wait in the kernel unsent: enough to keep a fast link
// busy, little enough that what is written last is the newest.
const unsent = 256 << 10

// conn is a TCP connection, or TLS over one.
type conn struct {
	*metered
	over    net.Conn // what is read and written: metered, or TLS over it
	network *network
	peer    int    // that was dialled
	address string // where
	fd      int    // for the fork handler's table and for questions to the kernel; used under mu
	mu      sync.Mutex
	gone    bool

	vec     [2][]byte // what Write and TryWrite hand to the kernel
	buffers net.Buffers

	own syscall.RawConn

	// Of TryWrite and Await: functions that are made once.
	attempt  func(fd uintptr) bool
	tried    int
	awaiting func(fd uintptr) bool
	arrived  func() bool
}

// newConn takes over an open connection; on failure it is closed.
func newConn(n *network, t *net.TCPConn) (*conn, error) {
	m := &metered{TCPConn: t}
	c := &conn{metered: m, over: m, network: n, fd: -1}
	rc, err := t.SyscallConn()
	c.own, c.attempt = rc, c.once
	c.awaiting = func(uintptr) bool { return c.arrived() }
	if err == nil {
		var failed error
		err = rc.Control(func(fd uintptr) {
			c.fd = int(fd)
			failed = mem.SetTCP(c.fd, unsent, n.cfg.Congestion)
		})
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		t.Close()
		if n.cfg.Congestion != "" {
			return nil, fmt.Errorf("setting up the connection, with congestion control %q: %w", n.cfg.Congestion, err)
		}
		return nil, err
	}
	mem.Track(c.fd)
	return c, nil
}

// Prove has the address tried after others if somebody else is there.
func (c *conn) Prove(permit func(incarnation uint64) handshake.Verdict) (err error) {
	if c.over, err = c.network.self.Secure(c.metered, c.network.cfg.Encrypt); err != nil {
		return err
	}
	incarnation, err := c.network.self.Dial(c.over, c.peer)
	if err == nil && permit(incarnation) != handshake.Accepted {
		err = &handshake.Refusal{Verdict: handshake.OtherProcess}
	}
	if err != nil {
		c.network.putLast(c.peer, c.address)
		return err
	}
	_ = c.SetLinger(-1)
	return nil
}

// Knock says the first byte of a hello.
func (c *conn) Knock() { _, _ = c.metered.Write([]byte{byte(protocol.Magic & 0xff)}) }

func (c *conn) Address() string { return c.RemoteAddr().String() }

func (c *conn) Close() error {
	c.mu.Lock()
	if !c.gone {
		c.gone = true
		mem.Untrack(c.fd)
	}
	c.mu.Unlock()
	return c.TCPConn.Close() // without TLS's goodbye, which could block
}

// Reset is Close where nobody takes what has been written: the kernel would try for
// minutes.
func (c *conn) Reset() {
	_ = c.SetLinger(0)
	c.Close()
}

func (c *conn) State() (s mem.Socket, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return s, false
	}
	s, err := mem.TCPState(c.fd)
	return s, err == nil
}

func (c *conn) Carried() (sent, received uint64) { return c.sent.Load(), c.received.Load() }

// metered counts what goes over a connection, below TLS.
type metered struct {
	*net.TCPConn
	sent, received atomic.Uint64
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.TCPConn.Read(b)
	m.received.Add(uint64(max(n, 0)))
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	n, err := m.TCPConn.Write(b)
	m.sent.Add(uint64(max(n, 0)))
	return n, err
}

func (c *conn) Read(b []byte) (int, error) { return c.over.Read(b) }

// Write does not copy a and b together where the kernel can gather.
func (c *conn) Write(a, b []byte) error {
	if len(b) == 0 || !c.Inline() {
		_, err := c.over.Write(a)
		if err == nil && len(b) > 0 {
			_, err = c.over.Write(b)
		}
		return err
	}
	c.vec = [2][]byte{a, b}
	c.buffers = c.vec[:]
	n, err := c.buffers.WriteTo(c.TCPConn)
	c.sent.Add(uint64(n))
	c.vec = [2][]byte{}
	return err
}

// Inline: not where TLS lies over it.
func (c *conn) Inline() bool { return c.over == net.Conn(c.metered) }

func (c *conn) TryWrite(a, b []byte) int {
	c.vec, c.tried = [2][]byte{a, b}, 0
	if len(a) > 0 {
		_ = c.own.Write(c.attempt)
	}
	c.vec = [2][]byte{}
	c.sent.Add(uint64(c.tried))
	return c.tried
}

func (c *conn) once(fd uintptr) bool {
	if n, err := mem.Write(int(fd), c.vec[:]); err == nil {
		c.tried = n
	}
	return true
}

// TryRead finds nothing once the connection is closed.
func (c *conn) TryRead(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return 0, nil
	}
	n, err := syscall.Read(c.fd, b)
	for err == syscall.EINTR {
		n, err = syscall.Read(c.fd, b)
	}
	switch {
	case n > 0:
		c.received.Add(uint64(n))
		return n, nil
	case err == nil:
		return 0, io.EOF
	case err == syscall.EAGAIN:
		return 0, nil
	}
	return 0, err
}

func (c *conn) Await(arrived func() bool) error {
	c.arrived = arrived
	return c.own.Read(c.awaiting)
}
