package box

import (
	"fmt"
	"sync"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Place is where a box lies in this process.
type Place struct {
	// Control is Layout.ControlBytes of memory that both ends may write, aligned
	// to 64 bytes. The sender gets it zeroed.
	Control []byte
	// Slot finds a slot: Layout.Stride bytes, aligned to 64. At a reader it is
	// asked only for slots that the sender has reserved, or says it has: it must
	// return memory for every number below Layout.Slots, or nil.
	Slot func(slot int) []byte
	// Find is called at a reader before Slot; nil where all slots are there from the start.
	Find func(slot int) error
}

// Relayer takes the updates of a box to readers that cannot map it.
type Relayer interface {
	Ring(bell uint64) // is End.Ring, for bells of this machine as well
	// Relay begins to do so, for a box that was made of e, until it has called
	// release; never, where it fails. The numbers of those readers in the box begin
	// with first.
	Relay(o *Outbox, e End, first int, readers []int, release func() error) error
}

// End is what a transport tells either end of a box.
type End struct {
	Place
	Layout     Layout
	Name       string      // for messages
	Sender     int         // its rank
	Member     uint32      // the sender's id, never reused
	Generation uint32      // of the view
	Bell       uint64      // this end's own doorbell, never 0
	Replica    bool        // of a queue: what the reader releases may not have arrived yet
	Lock       sync.Locker // at the sender of a queue that has relays: theirs, too

	Ring  func(bell uint64)    // rings a doorbell; one that is unknown or gone is ignored
	State func(rank int) error // rdma.Transport.State
	Meter *Meter               // may be nil
	Done  func() error         // called once, at the end of Close; may be nil
}

// attach checks what a transport gave.
func (e *End) attach() error {
	switch {
	case len(e.Control) != e.Layout.ControlBytes:
		return fmt.Errorf("%s: control block of %d bytes, expected %d", e.Name, len(e.Control), e.Layout.ControlBytes)
	case e.Slot == nil || e.Ring == nil || e.State == nil || e.Bell == 0:
		return fmt.Errorf("%s: an End needs Slot, Ring, State and Bell", e.Name)
	}
	return nil
}

func (e *End) done() error {
	if e.Done == nil {
		return nil
	}
	return e.Done()
}

// Header is what every slot of the box says.
func (e *End) Header() Header {
	return Header{Format: e.Layout.format(), Generation: e.Generation, Member: e.Member}
}

func (e *End) id() uint64 { return uint64(e.Generation)<<32 | uint64(e.Member) }

// format writes the first line of a fresh control block.
func (e *End) format() {
	for _, f := range e.Layout.description(e.Sender, e.id()) {
		mem.WordAt(e.Control, f.off).Store(f.v)
	}
}

// compare fails with ErrCorrupt unless the control block is the one that the
// announcement described.
func (e *End) compare() error {
	for _, f := range e.Layout.description(e.Sender, e.id()) {
		if v := mem.WordAt(e.Control, f.off).Load(); v != f.v {
			return fmt.Errorf("%s from rank %d: %w: %s is %#x, expected %#x",
				e.Name, e.Sender, rdma.ErrCorrupt, f.what, v, f.v)
		}
	}
	return nil
}
