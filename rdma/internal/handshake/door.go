package handshake

import (
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
	patience = 5 * time.Second
)

// Visitor is a connection as the owner of a Door has it.
type Visitor interface {
	comparable
	Close() error // may come at any time, also twice
	RemoteAddr() net.Addr
	SetDeadline(time.Time) error
}

// Door lets connections in: each is a stranger until the owner says that it
// knows it.
type Door[V Visitor] struct {
	listeners []net.Listener
	enter     func(*net.TCPConn) (V, error)
	greet     func(visitor V, known func() bool)
	all       sync.WaitGroup

	mu        sync.Mutex
	strangers []V // the oldest first
	closed    bool
}

// OpenDoor takes over listeners. enter takes over a connection; on failure it
// closes it. greet then has it, in a goroutine of its own, and calls known after
// the handshake, which takes the time limit away; false: it was closed meanwhile.
func OpenDoor[V Visitor](listeners []net.Listener, enter func(*net.TCPConn) (V, error), greet func(visitor V, known func() bool)) *Door[V] {
	d := &Door[V]{listeners: listeners, enter: enter, greet: greet}
	for _, l := range listeners {
		mem.TrackSocket(l, true)
		d.all.Go(func() { d.accept(l) })
	}
	return d
}

// Listeners are those that the Door was opened with.
func (d *Door[V]) Listeners() []net.Listener { return d.listeners }

// Keep closes the listeners but those that are of use.
func (d *Door[V]) Keep(use func(net.Listener) bool) {
	for _, l := range d.listeners {
		if !use(l) {
			mem.TrackSocket(l, false)
			l.Close()
		}
	}
}

// Close closes the listeners and all strangers, and waits for every greet.
func (d *Door[V]) Close() {
	d.mu.Lock()
	d.closed = true
	strangers := slices.Clone(d.strangers)
	d.mu.Unlock()
	for _, l := range d.listeners {
		mem.TrackSocket(l, false)
		l.Close()
	}
	for _, v := range strangers {
		v.Close()
	}
	d.all.Wait()
}

func (d *Door[V]) accept(l net.Listener) {
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
		if v, err := d.enter(t); err == nil && d.admit(v) {
			d.all.Go(func() { d.greet(v, func() bool { return d.know(v) }) })
		}
	}
}

// admit makes v a stranger.
func (d *Door[V]) admit(v V) bool {
	_ = v.SetDeadline(time.Now().Add(patience))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		v.Close()
		return false
	}
	if len(d.strangers) == mostStrangers {
		d.strangers[0].Close()
		d.strangers = slices.Delete(d.strangers, 0, 1)
	}
	d.strangers = append(d.strangers, v)
	return true
}

// know makes v a stranger no more, however its handshake has ended.
func (d *Door[V]) know(v V) bool {
	d.mu.Lock()
	i := slices.Index(d.strangers, v)
	if i >= 0 {
		d.strangers = slices.Delete(d.strangers, i, i+1)
	}
	d.mu.Unlock()
	return i >= 0 && v.SetDeadline(time.Time{}) == nil
}
