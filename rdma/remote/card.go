package remote

import (
	"context"
	"errors"
	"fmt"
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
	refused atomic.Pointer[error] // what was not registered first
	ended   chan struct{}         // of the goroutine that polls

	probes         mem.Pinned // a line to write from, and one for each peer to write into
	source, target fabric.Region

	mu      sync.Mutex
	last    uint32              // number of a room
	numbers map[uint32]*arrival // that peers may send
	writes  map[*fabric.Op]*write
	busy    []*link      // with a write that waits for its turn
	kept    []mem.Pinned // where peers may write as long as the carrier is open
}

// arrival is that of a number.
type arrival struct {
	here   bool // card.mu
	closed chan struct{}
	link   *link // to be woken; nil: none
}

// write is one that is under way.
type write struct {
	fabric.Op
	link *link
	back func() error // gives back what is written from

	done atomic.Bool
	err  error // once it is done
}

// probeBytes is the length of a probe.
const probeBytes = 64

// newCard takes over an open carrier; nil: there is none.
func newCard(c fabric.Carrier, peers int) (_ *card, err error) {
	if c == nil {
		return nil, nil
	}
	d := &card{Carrier: c, ended: make(chan struct{}), numbers: map[uint32]*arrival{}, writes: map[*fabric.Op]*write{}}
	if d.probes, err = mem.NewPinned(probeBytes * (1 + peers)); err == nil {
		d.source, err = c.Register(d.probes, fabric.Source)
	}
	if err == nil {
		d.target, err = c.Register(d.probes, fabric.Target)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close(), d.probes.Unmap())
	}
	go d.run()
	return d, nil
}

// Register goes on without what is refused.
func (c *card) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	r, err := c.Carrier.Register(m, a)
	if err != nil {
		c.refused.CompareAndSwap(nil, &err)
	}
	return r, err
}

// run is the goroutine that polls. It lands nothing.
func (c *card) run() {
	defer close(c.ended)
	var ev [16]fabric.Event
	for !c.closing.Load() {
		c.mu.Lock()
		busy := c.busy
		c.busy = nil
		c.mu.Unlock()
		pause := 100 * time.Millisecond
		if len(busy) > 0 {
			pause = time.Millisecond
		}
		n := c.Poll(ev[:])
		if n == 0 {
			c.Wait(pause)
		}
		for i := range ev[:n] {
			c.tell(&ev[i])
		}
		for _, l := range busy {
			l.kick()
		}
	}
}

// tell passes an event on. A fault of the way to some peer shows at the next write there.
func (c *card) tell(e *fabric.Event) {
	c.mu.Lock()
	w, a := c.writes[e.Op], c.numbers[e.Number]
	delete(c.writes, e.Op)
	if e.Op != nil || e.Err != nil || a != nil && a.here {
		a = nil
	} else if a != nil {
		a.here = true
		close(a.closed)
	}
	c.mu.Unlock()
	switch {
	case w != nil:
		w.err = e.Err
		w.done.Store(true)
		_ = w.back()
		w.link.kick()
	case a != nil && a.link != nil:
		a.link.kick()
	}
}

// begin begins to write; fabric.ErrBusy: the link is woken to try again.
func (c *card) begin(w *write) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.Write(&w.Op)
	switch {
	case err == nil:
		c.writes[&w.Op] = w
	case errors.Is(err, fabric.ErrBusy):
		c.busy = append(c.busy, w.link)
	}
	return err
}

// number is one more that a peer may send; 0: as many are out as the carrier can tell of. The link, if
// any, is woken when it arrives.
func (c *card) number(l *link) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.numbers) >= c.Caps().MaxRooms {
		return 0
	}
	if c.last++; c.last == 0 || c.numbers[c.last] != nil { // after 4 billion
		return 0
	}
	c.numbers[c.last] = &arrival{closed: make(chan struct{}), link: l}
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
	a := c.numbers[number]
	return a == nil || a.here
}

// await waits until number has come. Its sender knows that the payload is written; where no device
// does that, it takes both processes.
func (c *card) await(ctx context.Context, number uint32, lost time.Duration) error {
	c.mu.Lock()
	a := c.numbers[number]
	c.mu.Unlock()
	if a == nil {
		return nil
	}
	late := time.NewTimer(lost)
	defer late.Stop()
	select {
	case <-a.closed:
		return nil
	case <-late.C:
		return fmt.Errorf("a payload that was written has not arrived within %v", lost)
	case <-ctx.Done():
		return errClosing
	}
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
		_ = w.back()
	}
	for _, m := range append(c.kept, c.probes) {
		_ = m.Unmap()
	}
}
