package meeting

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
)

// protocol is the meeting's.
var protocol = handshake.Protocol{Magic: 0x3154_4545_4d54_4c4d, Version: 1, Name: "MALT meeting"} // "MLTMEET1"

func newSelf(c *Config) *handshake.Self {
	return handshake.New(protocol, []byte(c.Token), handshake.Hello{From: uint32(c.Rank), Size: uint32(c.Size)})
}

const (
	// Who has proved the token says at once who it is.
	cardPatience = 10 * time.Second
	// A host that gives no sign of life for so long is not there, unless the Config
	// grants it more. Idle, it is asked once a second: by then four answers in a row
	// are missing. It is not dialled to make sure, so that a lost packet or two must
	// not count.
	leastUnreachable = 5 * time.Second
	// How often that is looked at.
	lookEvery = 500 * time.Millisecond
	// What is said at the end is not waited for longer.
	farewell = time.Second
)

// conn is a connection between rank 0 and another one.
type conn struct {
	net.Conn // raw, or TLS over it
	raw      *net.TCPConn
	once     sync.Once
	writing  sync.Mutex
}

// newConn takes over an open connection; on failure it is closed.
func newConn(c *net.TCPConn) (*conn, error) {
	raw, err := c.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) { failed = mem.SetTCP(int(fd), 1<<16, "") })
		err = errors.Join(err, failed)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	mem.TrackSocket(c, true)
	return &conn{Conn: c, raw: c}, nil
}

// Close can be called at any time, and several times. TLS's goodbye, which could
// block, is left out.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		mem.TrackSocket(c.raw, false)
		err = c.raw.Close()
	})
	return err
}

// send writes one message.
func (c *conn) send(m *message) error { return c.write(m.encode()) }

func (c *conn) write(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.Write(b)
	return err
}

// say sends a last message and waits, not for long, for the other end to have
// read it.
func (c *conn) say(m *message) {
	_ = c.SetDeadline(time.Now().Add(farewell))
	if c.send(m) == nil && c.raw.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.raw)
	}
}

// interruptible closes c when ctx ends, until stop is called.
func (c *conn) interruptible(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}

// silent tells whether the other end's kernel has given no sign of life for so
// long. A process that is stopped has one that does; when that has no room left it
// is asked so seldom that its silence says nothing.
func (c *conn) silent(limit time.Duration) (yes bool) {
	raw, err := c.raw.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			if s, err := mem.TCPState(int(fd)); err == nil {
				yes = s.Silence >= limit && !s.Full
			}
		})
	}
	return yes
}

// here and there are the addresses of its ends.
func (c *conn) here() netip.Addr  { return addrOf(c.raw.LocalAddr()) }
func (c *conn) there() netip.Addr { return addrOf(c.raw.RemoteAddr()) }
