package remote

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

func (t *Transport) Map(bytes int) ([]byte, error) {
	b, err := mem.Map(bytes)
	if err != nil {
		return nil, fmt.Errorf("rank %d: memory of %d bytes: %w", t.Rank(), bytes, noMemory(err))
	}
	return b, nil
}

// Unmap can be called after Close.
func (t *Transport) Unmap(b []byte) error { return mem.Unmap(b) }

func noMemory(err error) error { return rdma.NoMemory(err) }

const (
	// Up to this size all slots of a box are made together, on the Go heap.
	atOnce = 256 << 10
	// A control block is on the heap whatever its size; beyond this it is looked
	// up first whether the memory is there.
	looked = 1 << 20
)

// slots is the memory of the slots of a box. Each is made when it is first used.
type slots struct {
	layout box.Layout
	each   []atomic.Pointer[[]byte]
	mapped bool  // each is a mapping of its own, once it is there
	card   *card // which may be given them; nil: none

	mu    sync.Mutex
	known []known // by slot; nil without a card
}

// known is a slot as a card knows it.
type known struct {
	pinned mem.Pinned
	region fabric.Region // nil: not yet
}

func newSlots(l box.Layout, c *card) *slots {
	s := &slots{layout: l, each: make([]atomic.Pointer[[]byte], l.Slots), card: c}
	if c != nil {
		s.known = make([]known, l.Slots)
	}
	if c != nil || l.SlotBytes() > atOnce {
		s.mapped = true
		return s
	}
	slot := l.Flat(mem.Heap(l.SlotBytes(), 64))
	for i := range s.each {
		b := slot(i)
		s.each[i].Store(&b)
	}
	return s
}

// slot is box.Place.Slot.
func (s *slots) slot(i int) []byte {
	if b := s.each[i].Load(); b != nil {
		return *b
	}
	return nil
}

// reserve makes a slot as a whole, when first bytes of it are used.
func (s *slots) reserve(i, _, _ int) error {
	if !s.mapped || s.each[i].Load() != nil {
		return nil
	}
	if s.card != nil {
		return s.pin(i)
	}
	b, err := mem.Map(s.layout.Stride)
	if err != nil {
		return noMemory(err)
	}
	s.each[i].Store(&b)
	return nil
}

// pin makes a slot that the card may be given.
func (s *slots) pin(i int) error {
	m, err := mem.NewPinned(s.layout.Stride)
	if err != nil {
		return noMemory(err)
	}
	if err := mem.Reserve(m.Bytes()); err != nil {
		return errors.Join(noMemory(err), m.Unmap())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[i] = known{pinned: m}
	b := m.Bytes()
	s.each[i].Store(&b)
	return nil
}

// region gives slot i to the card, once.
func (s *slots) region(i int, a fabric.Access) (_ fabric.Region, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.known[i]
	if k.region == nil {
		k.region, err = s.card.Register(k.pinned, a)
	}
	return k.region, err
}

// lose leaves the memory of slot i to the card, for as long as that is open.
func (s *slots) lose(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.card.keep(s.known[i].pinned)
	s.known[i] = known{}
	s.each[i].Store(nil)
}

// holding is the slot of which b is the payload.
func (s *slots) holding(b []byte) int {
	for i := range s.each {
		if slot := s.slot(i); slot != nil && &slot[headBytes] == &b[0] {
			return i
		}
	}
	return -1
}

// free gives everything back; nobody may use any of it.
func (s *slots) free() error {
	var errs []error
	for _, k := range s.known {
		if k.region != nil {
			errs = append(errs, k.region.Close())
		}
	}
	clear(s.known)
	if s.mapped {
		for i := range s.each {
			if b := s.each[i].Swap(nil); b != nil {
				errs = append(errs, mem.Unmap(*b))
			}
		}
	}
	return errors.Join(errs...)
}

// lease is memory that is given back when its last user is done.
type lease struct {
	mu    sync.Mutex
	users int // mu
	back  func() error
}

// hold is for one user more; not ok once the memory has been given back.
func (m *lease) hold() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return false
	}
	m.users++
	return true
}

// release is called once by each user, at its end.
func (m *lease) release() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	return m.back()
}

// newControl makes the control block of a box.
func newControl(l box.Layout) ([]byte, error) {
	if n := l.ControlBytes; n >= looked {
		free, limit := mem.Free()
		if uint64(n) > free {
			return nil, noMemory(&mem.ShortError{Want: uint64(n), Free: free, Limit: limit})
		}
	}
	return mem.Heap(l.ControlBytes, 64), nil
}
