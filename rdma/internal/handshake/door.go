package handshake

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma/internal/mem"
)

const (
	// A stranger is a connection that has yet to prove the token. So many at a
	// time are borne with, and as many as the job has ranks; of a process that may have
	// few descriptors, an eighth of those.
	mostStrangers = 256
	// A stranger has so long.
	patience = 5 * time.Second
	// A rank speaks as soon as it is connected: who has said nothing for so long goes
	// before the others.
	silence = 100 * time.Millisecond
	// Of an address from which a rank has come, so many do not count as a crowd.
	place = 16
)

// Visitor is a connection as the owner of a Door has it.
type Visitor interface {
	comparable
	Close() error // may come at any time, also twice
	SetDeadline(time.Time) error
}

// Visit is what the handshake tells the Door of a visitor.
type Visit interface {
	Spoke() // it has said something
	// Known says that the token is proved, before the other end hears of that; it takes
	// the time limit away. false: the visitor was sent away meanwhile.
	Known() bool
}

// Door lets connections in: each is a stranger until the owner says that it
// knows it. Nobody waits at it: where there are too many strangers one goes at
// once, of the address from which most have come.
type Door[V Visitor] struct {
	listeners []net.Listener
	most      int // strangers
	enter     func(*net.TCPConn) (V, error)
	greet     func(visitor V, visit Visit)
	all       sync.WaitGroup

	mu        sync.Mutex
	strangers []*stranger[V] // the oldest first
	crowds    map[netip.Addr]int
	homes     map[netip.Addr]bool // from where somebody has proved the token
	closed    bool
}

type stranger[V Visitor] struct {
	door  *Door[V]
	v     V
	raw   *net.TCPConn
	from  netip.Addr
	came  time.Time
	spoke atomic.Bool
}

// OpenDoor takes over listeners, for a job of so many ranks. enter takes over a connection; on failure it
// closes it. greet then has it, in a goroutine of its own.
func OpenDoor[V Visitor](listeners []net.Listener, ranks int, enter func(*net.TCPConn) (V, error), greet func(visitor V, visit Visit)) *Door[V] {
	d := &Door[V]{
		listeners: listeners, most: min(mostStrangers, mem.MostDescriptors()/8) + ranks, enter: enter, greet: greet,
		crowds: map[netip.Addr]int{}, homes: map[netip.Addr]bool{},
	}
	for _, l := range listeners {
		mem.TrackSocket(l, true)
		mem.DeferAccept(l)
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
		if v, err := d.enter(t); err == nil {
			s := &stranger[V]{door: d, v: v, raw: t, from: crowdOf(t.RemoteAddr()), came: time.Now()}
			if d.admit(s) {
				d.all.Go(func() {
					d.greet(v, s)
					d.mu.Lock()
					d.remove(s)
					d.mu.Unlock()
				})
			}
		}
	}
}

// crowdOf is an address, or of IPv6 the network of one link, where a host can have any.
func crowdOf(a net.Addr) netip.Addr {
	ip := a.(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		p, _ := ip.Prefix(64)
		return p.Addr()
	}
	return ip
}

// admit makes s a stranger, and sends another one away if they are too many.
func (d *Door[V]) admit(s *stranger[V]) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		s.v.Close()
		return false
	}
	if len(d.strangers) >= d.most {
		worst := d.worst(s.came)
		d.remove(worst)
		_ = worst.raw.SetLinger(0) // nothing of it stays with the kernel
		worst.v.Close()
	}
	_ = s.v.SetDeadline(s.came.Add(patience))
	d.strangers = append(d.strangers, s)
	d.crowds[s.from]++
	return true
}

// worst is who goes first: of the largest crowd the oldest, of those who are silent
// if there are any. mu is held.
func (d *Door[V]) worst(now time.Time) (worst *stranger[V]) {
	largest, silent := math.MinInt, false
	for _, s := range d.strangers {
		crowd := d.crowds[s.from]
		if d.homes[s.from] {
			crowd -= place
		}
		mute := !s.spoke.Load() && now.Sub(s.came) > silence
		if crowd > largest || crowd == largest && mute && !silent {
			worst, largest, silent = s, crowd, mute
		}
	}
	return worst
}

// remove makes s a stranger no more; false if it was none. mu is held.
func (d *Door[V]) remove(s *stranger[V]) bool {
	i := slices.Index(d.strangers, s)
	if i < 0 {
		return false
	}
	d.strangers = slices.Delete(d.strangers, i, i+1)
	if d.crowds[s.from]--; d.crowds[s.from] == 0 {
		delete(d.crowds, s.from)
	}
	return true
}

// Spoke is Visit.Spoke.
func (s *stranger[V]) Spoke() { s.spoke.Store(true) }

// Known is Visit.Known.
func (s *stranger[V]) Known() bool {
	s.door.mu.Lock()
	known := s.door.remove(s)
	if known {
		s.door.homes[s.from] = true
	}
	s.door.mu.Unlock()
	return known && s.v.SetDeadline(time.Time{}) == nil
}
