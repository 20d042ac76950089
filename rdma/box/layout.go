package box

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"

	"malt/rdma"
)

const (
	slotBits = 16 // of a latest word; the rest is the seq, 48 bits

	// MaxSlots is how many slots a box can have: a latest word has 16 bits for
	// the slot.
	MaxSlots = 1<<slotBits - 1

	line = 64        // payloads and headers are aligned to this
	page = 4096      // large slots to this, so that each can be reserved by itself
	big  = 64 * 1024 // what is large: padding a slot to pages costs at most a sixteenth
)

// Layout is the size of a box, a pure function of its Spec and its number of
// readers: both ends compute it, neither believes the other.
type Layout struct {
	Spec         rdma.Spec
	Readers      int
	Slots        int // in newest mode 2k+1, in lock-step 3k+1, in queue mode the depth
	Stride       int // bytes from slot to slot: header, payload, padding
	ControlBytes int // a multiple of 128

	digest uint64 // of Spec
}

// NewLayout fails when s contradicts itself, or asks for more slots or bytes
// than a box can have.
//
// Numbers of slots are reserved for updates that go to some readers only: then
// up to k slots are named by latest words (2k in lock-step), up to k others are
// pinned, and one is being filled. The writer takes the lowest free slot, so
// that slots beyond k+2 (k+3) are touched, and cost memory or even room in the address
// space, only when such updates are sent.
func NewLayout(s rdma.Spec, readers int) (Layout, error) {
	l := Layout{Spec: s, Readers: readers}
	switch {
	case s.Bytes < 0:
		return l, fmt.Errorf("payload of %d bytes; expected 0 or more", s.Bytes)
	case s.Mode < rdma.ByClock:
		return l, errors.New("a box of no mode, or a queue of no depth; expected Newest, ByClock, or Queue of 1 or more")
	case readers < 0 || readers > MaxSlots:
		return l, fmt.Errorf("%d readers; at most %d fit", readers, MaxSlots)
	}
	switch {
	case s.Mode.Depth() > 0:
		l.Slots = s.Mode.Depth()
	case s.Mode == rdma.ByClock:
		l.Slots = 3*readers + 1
	default:
		l.Slots = 2*readers + 1
	}
	if l.Slots > MaxSlots {
		return l, fmt.Errorf("%s for %d readers needs %d slots; at most %d fit", Describe(s), readers, l.Slots, MaxSlots)
	}
	const most = 1<<(bits.UintSize-2) - 1
	if s.Bytes > (most-page)/l.Slots-page-headerBytes {
		return l, fmt.Errorf("%d slots of %d bytes do not fit the address space", l.Slots, s.Bytes)
	}
	l.Stride = roundUp(headerBytes+s.Bytes, line)
	if l.Stride >= big {
		l.Stride = roundUp(l.Stride, page)
	}
	l.ControlBytes = offReaders + readers*readerBytes
	if s.Mode.Depth() > 0 {
		l.ControlBytes += roundUp(8*l.Slots*l.maskWords(), 2*line)
	}
	l.digest = digest(s)
	return l, nil
}

// SlotBytes is the length of all slots, one behind the other.
func (l Layout) SlotBytes() int { return l.Slots * l.Stride }

// Flat gives slots that lie one behind the other in b, for Place.Slot.
func (l Layout) Flat(b []byte) func(slot int) []byte {
	return func(slot int) []byte {
		at := slot * l.Stride
		return b[at : at+l.Stride : at+l.Stride]
	}
}

// maskWords is the number of words that hold one bit per reader.
func (l Layout) maskWords() int { return (l.Readers + 63) / 64 }

// parities is the number of latest words per reader.
func (l Layout) parities() int {
	if l.Spec.Mode == rdma.ByClock {
		return 2
	}
	return 1
}

// parity is that word of a reader which update seq is named in: the one before it stays named.
func (l Layout) parity(seq uint64) int { return int(seq % uint64(l.parities())) }

// digest is the same at both ends if their Specs are.
func digest(s rdma.Spec) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %t %q", s.Bytes, s.Mode.Depth(), s.Mode == rdma.ByClock, s.About)
	return h.Sum64()
}

// format is the digest as far as a slot's header has room for it.
func (l Layout) format() uint16 {
	d := l.digest
	return uint16(d ^ d>>16 ^ d>>32 ^ d>>48)
}

// Describe is a Spec in words, for a MismatchError.
func Describe(s rdma.Spec) string {
	mode := "newest"
	switch {
	case s.Mode.Depth() > 0:
		mode = "queue of " + strconv.Itoa(s.Mode.Depth())
	case s.Mode == rdma.ByClock:
		mode = "newest in lock-step"
	}
	d := fmt.Sprintf("%d bytes, %s", s.Bytes, mode)
	if s.About != "" {
		d += ", " + s.About
	}
	return d
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
