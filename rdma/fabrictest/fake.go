// Package fabrictest has what every fabric.Carrier passes, and a Carrier in memory.
//
//	fabrictest.Run(t, func(t *testing.T) fabric.Carrier { return net.Open() })
package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

// Net connects Carriers of one process: a write has arrived when Write returns. The zero value is ready.
type Net struct {
	mu    sync.Mutex
	cards []*Card // by address
	keys  uint64
}

const (
	writes   = 16 // at once
	maxWrite = 1 << 20
	maxRooms = 256
)

var (
	errKey  = errors.New("fake: the key is of no region")
	errGone = errors.New("fake: the peer is closed")
)

// Card is a Carrier of a Net.
type Card struct {
	net     *Net // whose mu guards what follows
	address uint64
	closed  bool
	peers   map[int]uint64
	regions map[uint64]*region // by key
	busy    int                // writes of which the completion was not polled
	events  []fabric.Event
	arrived chan struct{} // holds one when there may be events; closed with the Card
}

// Open makes one more.
func (n *Net) Open() *Card {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &Card{net: n, address: uint64(len(n.cards)), peers: map[int]uint64{}, regions: map[uint64]*region{}, arrived: make(chan struct{}, 1)}
	n.cards = append(n.cards, c)
	return c
}

type region struct {
	c   *Card
	m   mem.Pinned
	a   fabric.Access
	key uint64
}

// first is the address of a region's first byte.
const first = 1 << 32

func (r *region) Remote() (address, key uint64) { return first, r.key }

func (r *region) Close() error {
	r.c.net.mu.Lock()
	defer r.c.net.mu.Unlock()
	delete(r.c.regions, r.key)
	return nil
}

// About is fabric.Carrier.About, and so on.
func (c *Card) About() fabric.About {
	return fabric.About{Provider: "fake", Device: fmt.Sprint(c.address)}
}

// Caps are those of hardware.
func (c *Card) Caps() fabric.Caps {
	return fabric.Caps{MaxWrite: maxWrite, MaxRooms: maxRooms, Hardware: true}
}

func (c *Card) Address() []byte { return binary.LittleEndian.AppendUint64(nil, c.address) }

func (c *Card) Connect(peer int, address []byte) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return fabric.ErrClosed
	}
	if len(address) != 8 {
		return fmt.Errorf("fake: an address of %d bytes, expected 8", len(address))
	}
	c.peers[peer] = binary.LittleEndian.Uint64(address)
	return nil
}

func (c *Card) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return nil, fabric.ErrClosed
	}
	c.net.keys++
	r := &region{c, m, a, c.net.keys}
	c.regions[r.key] = r
	return r, nil
}

func (c *Card) Write(op *fabric.Op) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return fabric.ErrClosed
	}
	from, _ := op.From.(*region)
	to, connected := c.peers[op.Peer]
	switch {
	case !connected:
		return fmt.Errorf("fake: peer %d is not connected", op.Peer)
	case from == nil || c.regions[from.key] != from:
		return errors.New("fake: the memory to write from is not registered here")
	case op.At < 0 || op.Bytes < 1 || op.Bytes > maxWrite || op.Bytes > len(from.m.Bytes())-op.At:
		return fmt.Errorf("fake: a write of %d bytes from byte %d of %d", op.Bytes, op.At, len(from.m.Bytes()))
	case c.busy == writes:
		return fabric.ErrBusy
	}
	c.busy++
	e := fabric.Event{Op: op}
	if to >= uint64(len(c.net.cards)) || c.net.cards[to].closed {
		e.Err = errGone
	} else {
		e.Err = c.net.cards[to].land(op, from.m.Bytes()[op.At:][:op.Bytes])
	}
	c.tell(e)
	return nil
}

// land is a write that comes in.
func (c *Card) land(op *fabric.Op, b []byte) error {
	r := c.regions[op.Key]
	at := op.Address - first // huge if it is below
	if r == nil || r.a != fabric.Target || at > uint64(len(r.m.Bytes())) || uint64(len(b)) > uint64(len(r.m.Bytes()))-at {
		return errKey
	}
	copy(r.m.Bytes()[at:], b)
	if op.Number != 0 {
		c.tell(fabric.Event{Number: op.Number})
	}
	return nil
}

func (c *Card) tell(e fabric.Event) {
	c.events = append(c.events, e)
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *Card) Poll(ev []fabric.Event) int {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return 0
	}
	n := copy(ev, c.events)
	c.events = c.events[n:]
	for _, e := range ev[:n] {
		if e.Op != nil {
			c.busy--
		}
	}
	return n
}

func (c *Card) Wait(d time.Duration) {
	select {
	case <-c.arrived:
	case <-time.After(d):
	}
}

func (c *Card) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if !c.closed {
		close(c.arrived) // out of Wait
	}
	c.closed = true
	clear(c.regions)
	return nil
}
