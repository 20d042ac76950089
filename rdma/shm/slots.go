package shm

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// slots are slots in a File, one behind the other, of which as much is mapped as is
// used: a box needs a slot for each update that some reader may hold, but the sender
// takes the lowest that is free, and most are never used.
type slots struct {
	stride, count int
	flat          []byte // all of them, if they are mapped together; else empty
	before        []byte // mapped up to the border of a page, from which they go on
	readOnly      bool

	mu    sync.Mutex             // for who maps more
	parts atomic.Pointer[[]part] // nil: none
}

// part is a mapping of some slots, behind those of the part before.
type part struct {
	bytes []byte
	first int // where in it the first of them begins
	end   int // the number of the slot behind the last
}

// leastPart is how many slots are mapped when the first is used: at one update at a time
// the sender needs two or three.
const leastPart = 4

func (s *slots) mapped() []part {
	if p := s.parts.Load(); p != nil {
		return *p
	}
	return nil
}

// slot is nil where find has not been called for it.
func (s *slots) slot(i int) []byte {
	before := 0
	for _, p := range s.mapped() {
		if i < p.end {
			at := p.first + (i-before)*s.stride
			return p.bytes[at : at+s.stride : at+s.stride]
		}
		before = p.end
	}
	return nil
}

// find maps slot i, and others with it, where it is not mapped.
func (s *slots) find(i int) error {
	if s.slot(i) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slot(i) != nil {
		return nil
	}
	parts := s.mapped()
	last := part{bytes: s.before}
	if len(parts) > 0 {
		last = parts[len(parts)-1]
	}
	p := part{first: (len(last.bytes)-1)%os.Getpagesize() + 1, end: min(max(2*last.end, i+1, leastPart), s.count)}
	var err error
	if p.bytes, err = mem.Further(last.bytes, p.first+(p.end-last.end)*s.stride, s.readOnly); err != nil {
		return rdma.NoMemory(err)
	}
	more := append(parts[:len(parts):len(parts)], p)
	s.parts.Store(&more)
	return nil
}

// unmap gives back what find has mapped; nobody may use any of it.
func (s *slots) unmap() error {
	var errs []error
	for _, p := range s.mapped() {
		errs = append(errs, mem.Unmap(p.bytes))
	}
	s.parts.Store(nil)
	return errors.Join(errs...)
}
