package remote

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

// card is the carrier of a rank, and what it has said.
type card struct {
	fabric.Carrier
	closing atomic.Bool
	ended   chan struct{} // of the goroutine that polls

	from, to       mem.Pinned // the rings of each peer: what is written from, and into
	source, target fabric.Region

	mu      sync.Mutex
	rings   map[uint32]*ring // by the upper bits of their numbers
	last    uint32           // number of a room
	numbers map[uint32]*link // that peers may send; nil: it has arrived
	writes  map[*fabric.Op]*write
	kept    []mem.Pinned // where peers may write as long as the carrier is open
}

// write is one that is under way.
type write struct {
	fabric.Op
	link *link
	back func() error // gives back what is written from; nil: it is of a ring
	n    uint64       // it is the link's n-th; card.mu

	done atomic.Bool
	err  error // once it is done
}

// newCard takes over an open carrier; nil: there is none. It is to run.
func newCard(c fabric.Carrier, peers int) (_ *card, err error) {
	if c == nil {
		return nil, nil
	}
	d := &card{Carrier: c, ended: make(chan struct{}), numbers: map[uint32]*link{}, writes: map[*fabric.Op]*write{}, rings: map[uint32]*ring{}}
	if d.from, err = mem.NewPinned(ringBytes * peers); err == nil {
		d.source, err = c.Register(d.from, fabric.Source)
	}
	if err == nil {
		d.to, err = mem.NewPinned(ringBytes * peers)
	}
	if err == nil {
		d.target, err = c.Register(d.to, fabric.Target)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close(), d.from.Unmap(), d.to.Unmap())
	}
	return d, nil
}

// poll passes on what has happened; false: nothing has.
func (c *card) poll() bool {
	var ev [16]fabric.Event
	n := c.Poll(ev[:])
	for i := range ev[:n] {
		c.tell(&ev[i])
	}
	return n > 0
}

// run is the goroutine that polls.
func (c *card) run() {
	defer close(c.ended)
	for !c.closing.Load() {
		if !c.poll() {
			c.Wait(100 * time.Millisecond)
		}
	}
}

// tell passes an event on. A fault of the way to some peer shows at the next write there.
func (c *card) tell(e *fabric.Event) {
	c.mu.Lock()
	w := c.writes[e.Op]
	delete(c.writes, e.Op)
	var l *link
	var r *ring
	if e.Number != 0 { // one has arrived
		if l, r = c.numbers[e.Number], c.rings[e.Number>>ringShift]; l != nil {
			c.numbers[e.Number] = nil
		} else if r != nil && r.in.arrive(uint16(e.Number)) {
			l = r.session.link
		}
	}
	c.mu.Unlock()
	switch {
	case l != nil:
		select {
		case l.news <- struct{}{}:
		default:
		}
		if r != nil {
			r.session.drain()
		}
	case w == nil:
	case w.back == nil:
		l := w.link
		if e.Err != nil {
			_ = l.unpair(e.Err)
		}
		w.done.Store(true) // from here on w is another one's
		if l.starved.Swap(false) || e.Err != nil {
			l.kick()
		}
	default:
		w.err = e.Err
		w.done.Store(true)
		_ = w.back()
		w.link.kick()
	}
}

// begin begins to write; not ok, and no error: the link is woken in a moment to try again.
func (c *card) begin(w *write) (ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err = c.Write(&w.Op); {
	case err == nil:
		w.link.begun++
		w.n = w.link.begun
		c.writes[&w.Op] = w
		return true, nil
	case errors.Is(err, fabric.ErrBusy):
		w.link.turned = true
		w.link.rank.later.ask()
		return false, nil
	}
	return false, err
}

// oldest is the first write of a link that has not ended, or since the last look has not begun, by number; 0: there
// is none.
func (c *card) oldest(l *link) (n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.turned {
		n, l.turned = l.begun+1, false
	}
	for _, w := range c.writes {
		if w.link == l && (n == 0 || w.n < n) {
			n = w.n
		}
	}
	return n
}

// numbered is how many numbers may arrive; mu is held.
func (c *card) numbered() int { return len(c.numbers) + records*len(c.rings) }

// number is one more that the peer of a link may send; 0: as many are out as the carrier can tell of.
func (c *card) number(l *link) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbered() >= c.Caps().MaxRooms {
		return 0
	}
	c.last = c.last%(ringNumbers-1) + 1
	if _, out := c.numbers[c.last]; out { // after 2 billion
		return 0
	}
	c.numbers[c.last] = l
	return c.last
}

func (c *card) forget(number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.numbers, number)
}

// arrived tells whether number has come, or never will.
func (c *card) arrived(number uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.numbers[number] == nil
}

// keep is for memory into which a peer may write as long as the carrier is open.
func (c *card) keep(m mem.Pinned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, m)
}

// close comes when no link uses it any more.
func (c *card) close() {
	if c == nil {
		return
	}
	c.closing.Store(true)
	_ = c.Carrier.Close()
	<-c.ended
	for _, w := range c.writes {
		if w.back != nil {
			_ = w.back()
		}
	}
	for _, m := range append(c.kept, c.from, c.to) {
		_ = m.Unmap()
	}
}
