package tcp

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"malt/rdma/internal/mem"
)

const (
	// A stranger is a connection that has yet to prove the token. So many at a
	// time are borne with; the oldest makes room for the next, since a rank needs
	// milliseconds.
	mostStrangers = 64
	// A stranger has so long.
	handshakePatience = 5 * time.Second
)

// door lets the peers' connections in.
type door struct {
	rank *rank
	all  sync.WaitGroup

	mu        sync.Mutex
	strangers []*conn // the oldest first
	closed    bool
}

func openDoor(r *rank) *door {
	d := &door{rank: r}
	for _, l := range r.cfg.Listeners {
		trackListener(l, true)
		d.all.Go(func() { d.accept(l) })
	}
	return d
}

// close ends all that is not a link's yet.
func (d *door) close() {
	d.mu.Lock()
	d.closed = true
	strangers := slices.Clone(d.strangers)
	d.mu.Unlock()
	for _, l := range d.rank.cfg.Listeners {
		trackListener(l, false)
		l.Close()
	}
	for _, c := range strangers {
		c.Close()
	}
	d.all.Wait()
}

func (d *door) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, perhaps for a while
			time.Sleep(10 * time.Millisecond)
			continue
		}
		t, ok := c.(*net.TCPConn)
		if !ok {
			c.Close()
			continue
		}
		if n, err := newConn(t, d.rank.cfg.Congestion); err == nil && d.admit(n) {
			d.all.Go(func() { d.greet(n) })
		}
	}
}

// admit makes c a stranger.
func (d *door) admit(c *conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		c.Close()
		return false
	}
	if len(d.strangers) == mostStrangers {
		d.strangers[0].Close()
		d.strangers = slices.Delete(d.strangers, 0, 1)
	}
	d.strangers = append(d.strangers, c)
	return true
}

// greet is a stranger's handshake. Whatever fails in it has no effect.
func (d *door) greet(c *conn) {
	r := d.rank
	_ = c.SetDeadline(time.Now().Add(handshakePatience))
	if r.cfg.TLS != nil {
		c.Conn = tls.Server(c.raw, modern(r.cfg.TLS))
	}
	from, err := r.self.accept(c.Conn, func(from int, incarnation uint64) verdict {
		return r.links[from].permit(incarnation)
	})
	d.mu.Lock()
	if i := slices.Index(d.strangers, c); i >= 0 {
		d.strangers = slices.Delete(d.strangers, i, i+1)
	}
	d.mu.Unlock()
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	r.links[from].offer(c)
}

// modern is the newest version of TLS only.
func modern(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = tls.VersionTLS13
	return c
}

// trackListener has forked children close l, or not any more.
func trackListener(l net.Listener, track bool) {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	rc, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Control(func(fd uintptr) {
		if track {
			mem.Track(int(fd))
		} else {
			mem.Untrack(int(fd))
		}
	})
}
