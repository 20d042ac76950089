// Package fabric is what MALT asks of a network that writes into the memory of another process by
// itself (RDMA): a Carrier.
//
//	c, err := ofi.Open("verbs;ofi_rxm", "", 8)
//	room, err := c.Register(memory, fabric.Target) // the peer learns address and key over TCP
//	err = c.Write(&fabric.Op{Peer: 1, From: region, Bytes: 4096, Address: address, Key: key, Number: 7})
//	n := c.Poll(events) // here: the Op has completed; at the peer: number 7 has arrived
//
// # Caveats
//
// A completion says that the memory written from may be used again. That the bytes are in the peer's
// memory only the peer knows: when its Poll returns the Op's number.
//
// Writes may overtake one another. The order of what is written, and who may use which memory when,
// is up to the caller.
//
// With the first write to a peer that fails the way there may have ended for good.
//
// A peer with the key of a region may write into it until it is closed. Where Caps.Hardware is false, what
// is in flight then may still land, and the writer is not told of a write that is refused or lost: such
// memory is kept until Carrier.Close.
package fabric

import (
	"errors"
	"fmt"
	"time"

	"malt/rdma/internal/mem"
)

// Why is an error that says in a word why updates do not go by RDMA.
type Why int32

// The numbers are those of malt_edge.rdma.
const (
	ErrOff       Why = iota + 3 // the user wants no RDMA
	ErrNoDevice                 // this machine has no device for it
	ErrNoLibrary                // the library that drives the device cannot be loaded
	ErrMemlock                  // see MemlockError
	ErrEncrypted                // the connection is encrypted, which what a card writes is not
	ErrFailed                   // anything else
)

func (w Why) Error() string {
	return [...]string{"off", "no device", "no library", "memlock", "encrypted", "failed"}[w-ErrOff]
}

// WhyOf is what an error says of why there is no RDMA.
func WhyOf(err error) Why {
	why := ErrFailed
	errors.As(err, &why)
	return why
}

var (
	// ErrBusy: as many writes are under way as there can be, or the way to the peer is being
	// made. Poll, then write again.
	ErrBusy = errors.New("busy")
	// ErrClosed: the Carrier was closed before the call.
	ErrClosed = errors.New("closed")
)

// MemlockError: a card needs more memory than this process may lock, in bytes.
type MemlockError struct{ Limit, Need uint64 }

func (e *MemlockError) Error() string {
	return fmt.Sprintf("it needs %d KiB of locked memory, and RLIMIT_MEMLOCK is %d KiB", e.Need>>10, e.Limit>>10)
}

func (e *MemlockError) Unwrap() error { return ErrMemlock }

// Carrier writes into the memory of peers. Its methods can be called by several goroutines.
type Carrier interface {
	About() About
	Caps() Caps
	// Address is what a peer connects to.
	Address() []byte
	// Connect makes the Carrier at an address a peer, by a number of the caller's. It does not wait.
	Connect(peer int, address []byte) error
	// Register makes memory known to the network, until the region is closed. It can fail with MemlockError.
	Register(m mem.Pinned, a Access) (Region, error)
	// Write begins to write, and never waits. The Op is the Carrier's until Poll returns it.
	Write(op *Op) error
	// Poll says what has happened, and never waits. One caller at a time is served; others get 0.
	Poll(ev []Event) int
	// Wait returns when Poll may have something to say, or after d.
	Wait(d time.Duration)
	// Close ends everything: afterwards the network neither reads nor writes here. It waits a moment
	// for writes in flight, which end without an event.
	Close() error
}

// About names a Carrier for people.
type About struct{ Provider, Device, Library string }

// Caps is what a Carrier can do.
type Caps struct {
	MaxWrite int // bytes of an Op
	MaxRooms int // numbers that peers may be about to send, so that no event is lost
	// Hardware: nothing is written into a region once it is closed, and such a write fails; writes arrive
	// also while the process that they go to is stopped.
	Hardware bool
}

// Access is what the network may do with a region.
type Access uint8

const (
	// Source: this process writes from there.
	Source Access = iota
	// Target: peers write there.
	Target
)

// Region is memory that the network knows.
type Region interface {
	// Remote is where peers find its first byte, and what lets them write there.
	Remote() (address, key uint64)
	// Close can come twice, and after Carrier.Close.
	Close() error
}

// Op is a write: Bytes bytes from byte At of From on, to an address of the peer. Number arrives with
// the last of them; 0: no number.
type Op struct {
	Peer         int
	From         Region
	At, Bytes    int
	Address, Key uint64
	Number       uint32
}

// Event is one of: an Op has completed, or failed with Err; a Number has arrived, and all bytes that
// its Op wrote; without either, something is wrong with the way to some peer.
type Event struct {
	Op     *Op
	Number uint32
	Err    error
}
