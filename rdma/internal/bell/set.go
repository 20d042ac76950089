package bell

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Set is bells by number, for box.End.Ring. Numbers begin with 1 and are never
// used again. The zero value is empty.
type Set struct {
	mu    sync.Mutex
	bells atomic.Pointer[[]*Bell] // bell i has number i+1; only grows, by copying
}

func (s *Set) all() []*Bell {
	if p := s.bells.Load(); p != nil {
		return *p
	}
	return nil
}

// Add makes a bell and its number.
func (s *Set) Add(owner int) (*Bell, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := New(owner)
	bells := append(slices.Clone(s.all()), b)
	s.bells.Store(&bells)
	return b, uint64(len(bells))
}

// Ring rings one bell; a number that is no bell's is ignored.
func (s *Set) Ring(id uint64) {
	if bells := s.all(); id-1 < uint64(len(bells)) {
		bells[id-1].Ring()
	}
}

// RingAll rings every bell.
func (s *Set) RingAll() {
	for _, b := range s.all() {
		b.Ring()
	}
}

// RingOwner rings all bells of one owner.
func (s *Set) RingOwner(owner int) {
	for _, b := range s.all() {
		if b.owner == owner {
			b.Ring()
		}
	}
}
