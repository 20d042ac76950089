package shm

import (
	"fmt"
	"sync"

	"malt/rdma/internal/mem"
)

// memory is what Map has given out: Unmap takes nothing else, and nothing twice.
type memory struct {
	mu   sync.Mutex
	live map[*byte]int // first byte -> capacity
}

func (m *memory) add(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live == nil {
		m.live = map[*byte]int{}
	}
	m.live[first(b)] = cap(b)
}

// remove forgets b and tells whether it was there.
func (m *memory) remove(b []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cap(b) == 0 || m.live[first(b)] != cap(b) {
		return false
	}
	delete(m.live, first(b))
	return true
}

func first(b []byte) *byte { return &b[:1][0] }

// Map counts memory that other ranks are about to take as taken.
func (t *Transport) Map(bytes int) ([]byte, error) {
	b, err := t.Host.Map(bytes)
	if err != nil {
		return nil, fmt.Errorf("rank %d: memory of %d bytes: %w", t.Rank(), bytes, err)
	}
	t.memory.add(b)
	return b, nil
}

// Unmap can be called after Close.
func (t *Transport) Unmap(b []byte) error {
	if !t.memory.remove(b) {
		return fmt.Errorf("rank %d: Unmap of %d bytes that did not come from Map, were resliced, or have been given back", t.Rank(), len(b))
	}
	return mem.Unmap(b)
}
