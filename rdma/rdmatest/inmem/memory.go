package inmem

import (
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Map is off the Go heap, as rdma.Transport asks: what it returns is handed to C
// and numpy, which keep it.
func (t *transport) Map(bytes int) ([]byte, error) {
	b, err := mem.Map(bytes)
	if err != nil {
		return nil, rdma.NoMemory(err)
	}
	return b, nil
}

// Unmap lets the garbage collector have a block of a Shared.
func (t *transport) Unmap(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := &b[:1][0]
	if _, ok := t.blocks[first]; ok {
		delete(t.blocks, first)
		return nil
	}
	return mem.Unmap(b)
}

const (
	looked  = 1 << 20 // from here on it is looked up whether memory is there: that takes some file reads
	largest = 1 << 46 // no Go slice is larger
)

// heap makes zeroed memory for a part of a box; large parts start at a page.
func heap(bytes int) ([]byte, error) {
	if bytes >= looked {
		free, limit := mem.Free()
		if uint64(bytes) > free || bytes > largest {
			short := &mem.ShortError{Want: uint64(bytes), Free: free, Limit: limit}
			return nil, rdma.NoMemory(short)
		}
	}
	if bytes >= 4096 {
		return mem.Heap(bytes, 4096), nil
	}
	return mem.Heap(bytes, 64), nil
}
