package wiretest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"malt/rdma/internal/mem"
)

// room is how much waits for an end to read it.
const room = 64 << 10

// pair is a connection.
type pair struct {
	mu   sync.Mutex
	news chan struct{} // is closed, and made again, whenever something changes
	lost bool          // nothing passes any more, neither bytes nor ends
}

// conn is one end of it. pair.mu guards what can change.
type conn struct {
	*pair
	at    *host
	other *conn
	left  int // bytes that can be written until the connection is lost

	buf            []byte // has come
	ended          bool   // nothing more comes
	failed         error  // of reads and writes
	closed         bool   // from here
	read, write    time.Time
	sent, received uint64
}

// change changes something.
func (p *pair) change(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
	p.changed()
}

// changed wakes all that wait; mu is held.
func (p *pair) changed() {
	close(p.news)
	p.news = make(chan struct{})
}

// fail ends reads and writes.
func (c *conn) fail(why error) {
	c.change(func() { c.broken(why) })
}

// broken is fail; mu is held.
func (c *conn) broken(why error) {
	if c.failed == nil {
		c.failed, c.buf = why, nil
	}
}

// until calls step until it is true, and then whenever something has changed or a limit
// has passed.
func (p *pair) until(limit *time.Time, step func() bool) error {
	for {
		p.mu.Lock()
		news, at := p.news, *limit
		p.mu.Unlock()
		if step() {
			return nil
		}
		var over <-chan time.Time
		if !at.IsZero() {
			if !time.Now().Before(at) {
				return os.ErrDeadlineExceeded
			}
			over = time.After(time.Until(at))
		}
		select {
		case <-news:
		case <-over:
		}
	}
}

func (c *conn) Inline() bool { return c.at.net.inline }

// TryRead finds nothing once the connection is closed.
func (c *conn) TryRead(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case c.failed != nil:
		err = c.failed
	case len(c.buf) > 0:
		n = copy(b, c.buf)
		c.buf = c.buf[n:]
		c.received += uint64(n)
		c.changed()
	case c.ended:
		err = io.EOF
	}
	return n, err
}

func (c *conn) Read(b []byte) (n int, err error) {
	late := c.until(&c.read, func() bool {
		if n, err = c.TryRead(b); n == 0 && err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.closed {
				err = net.ErrClosed
			}
		}
		return n > 0 || err != nil
	})
	if late != nil {
		return 0, late
	}
	return n, err
}

func (c *conn) Await(arrived func() bool) (err error) {
	late := c.until(&c.read, func() bool {
		if arrived() {
			return true
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			err = net.ErrClosed
		}
		return c.closed
	})
	if late != nil {
		return late
	}
	return err
}

// put writes what there is room for, and may lose the connection by that.
func (c *conn) put(b []byte) (n int, err error) {
	c.mu.Lock()
	alive := !c.lost
	switch {
	case c.failed != nil:
		err = c.failed
	case c.lost:
		n = len(b)
	case c.other.closed:
		err = syscall.EPIPE
	default:
		if n = min(len(b), room-len(c.other.buf)); n > 0 {
			passes := min(n, c.left)
			if c.at.net.keep.Load() {
				passes, c.left = n, c.left+n
			}
			c.other.buf = append(c.other.buf, b[:passes]...)
			c.left -= passes
			c.lost = c.left == 0
			c.changed()
		}
	}
	c.sent += uint64(n)
	lost := alive && c.lost
	c.mu.Unlock()
	if lost {
		c.at.net.lose(c)
	}
	return n, err
}

func (c *conn) TryWrite(a, b []byte) int {
	n, err := c.put(a)
	if err == nil && n == len(a) {
		m, _ := c.put(b)
		n += m
	}
	return n
}

func (c *conn) Write(a, b []byte) (err error) {
	for _, b := range [][]byte{a, b} {
		late := c.until(&c.write, func() bool {
			n := 0
			if len(b) > 0 {
				n, err = c.put(b)
				b = b[n:]
			}
			return len(b) == 0 || err != nil
		})
		if late != nil {
			return late
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.change(func() { c.read = t })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.change(func() { c.write = t })
	return nil
}

// end tells the other end, unless the connection is lost.
func (c *conn) end(how func(other *conn)) {
	if !c.lost {
		how(c.other)
	}
}

func (c *conn) CloseWrite() error {
	c.change(func() { c.end(func(other *conn) { other.ended = true }) })
	return nil
}

func (c *conn) Close() error {
	c.change(func() {
		c.closed = true
		c.broken(net.ErrClosed)
		c.end(func(other *conn) { other.ended = true })
	})
	return nil
}

func (c *conn) Reset() {
	c.change(func() {
		c.closed = true
		c.broken(net.ErrClosed)
		c.end(func(other *conn) { other.broken(syscall.ECONNRESET) })
	})
}

// State: what is written has arrived at once.
func (c *conn) State() (s mem.Socket, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return mem.Socket{Acked: c.sent, Ended: c.ended || c.failed != nil}, !c.closed
}

func (c *conn) Carried() (sent, received uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.received
}

func (c *conn) Knock()          {}
func (c *conn) Address() string { return c.at.Addresses(c.other.at.rank)[0] }
