package shm

import (
	"sync"

	"malt/rdma/internal/mem"
)

// holds are the mappings that a rank has of the memory of others: one of each File, for all
// that lies in it. The zero value is empty.
type holds struct {
	mu sync.Mutex
	of map[mem.ID]*hold // the longest
}

// hold is such a mapping, from the start of the File.
type hold struct {
	all   *holds
	id    mem.ID
	bytes []byte
	users int
}

// take maps the first n bytes of f, unless they are mapped. All that take the same File do
// so with the same rights.
func (all *holds) take(f *mem.File, writable bool, n int) (*hold, error) {
	id, err := f.ID()
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	h := all.of[id]
	if h == nil || len(h.bytes) < n {
		b, err := f.MapFrom(writable, 0, n)
		if err != nil {
			return nil, err
		}
		if all.of == nil {
			all.of = map[mem.ID]*hold{}
		}
		h = &hold{all: all, id: id, bytes: b}
		all.of[id] = h
	}
	h.users++
	return h, nil
}

// give is called once for each take; the last unmaps it. It does nothing to nil.
func (h *hold) give() error {
	if h == nil {
		return nil
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.users--; h.users > 0 {
		return nil
	}
	if h.all.of[h.id] == h {
		delete(h.all.of, h.id)
	}
	return mem.Unmap(h.bytes)
}
