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
	// time are borne with.
	mostStrangers = 64
	// A stranger has so long.
	patience = 5 * time.Second
	// Where there are many, the oldest makes room for the next, but not before a
	// rank would have been done. The next ones wait in the kernel: so all of many
	// ranks that come at once get in.
	turn = 200 * time.Millisecond
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
	strangers []stranger[V] // the oldest first
	left      chan struct{} // closed, and made anew, when one of them is none any more
	closed    bool
}

type stranger[V Visitor] struct {
	v    V
	came time.Time
}

// OpenDoor takes over listeners. enter takes over a connection; on failure it
// closes it. greet then has it, in a goroutine of its own, and calls known when
// the token is proved, before the other end hears of that; it takes the time
// limit away. false: the visitor was sent away meanwhile.
func OpenDoor[V Visitor](listeners []net.Listener, enter func(*net.TCPConn) (V, error), greet func(visitor V, known func() bool)) *Door[V] {
	d := &Door[V]{listeners: listeners, enter: enter, greet: greet, left: make(chan struct{})}
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
	d.leave()
	d.mu.Unlock()
	for _, l := range d.listeners {
		mem.TrackSocket(l, false)
		l.Close()
	}
	for _, s := range strangers {
		s.v.Close()
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
			d.all.Go(func() {
				d.greet(v, func() bool { return d.know(v) })
				d.know(v)
			})
		}
	}
}

// admit makes v a stranger, once there is room.
func (d *Door[V]) admit(v V) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && len(d.strangers) == mostStrangers {
		oldest := d.strangers[0]
		if wait := turn - time.Since(oldest.came); wait > 0 {
			d.await(wait)
			continue
		}
		oldest.v.Close()
		d.strangers = slices.Delete(d.strangers, 0, 1)
	}
	if d.closed {
		v.Close()
		return false
	}
	now := time.Now()
	_ = v.SetDeadline(now.Add(patience))
	d.strangers = append(d.strangers, stranger[V]{v, now})
	return true
}

// await waits for a stranger to leave, for so long; mu is held, but not
// meanwhile.
func (d *Door[V]) await(most time.Duration) {
	left := d.left
	d.mu.Unlock()
	defer d.mu.Lock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
}

// leave tells who waits for that; mu is held.
func (d *Door[V]) leave() {
	close(d.left)
	d.left = make(chan struct{})
}

// know makes v a stranger no more; false if it was none.
func (d *Door[V]) know(v V) bool {
	d.mu.Lock()
	i := slices.IndexFunc(d.strangers, func(s stranger[V]) bool { return s.v == v })
	if i >= 0 {
		d.strangers = slices.Delete(d.strangers, i, i+1)
		d.leave()
	}
	d.mu.Unlock()
	return i >= 0 && v.SetDeadline(time.Time{}) == nil
}
