package shm

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// slots is a File of slots, one behind the other, of which as much is mapped as is
// used: a box needs a slot for each update that some reader may hold, but the sender
// takes the lowest that is free, and most are never used.
type slots struct {
	stride, count int

	mu    sync.Mutex // for who maps more
	parts atomic.Pointer[[]part]
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

// mapSlots maps all slots at once, or none yet, of count that begin at byte from.
func mapSlots(f *mem.File, writable, all bool, from, stride, count int) (*slots, error) {
	page := os.Getpagesize()
	p := part{first: from % page}
	n := p.first + 1 // a page, by which the others are reached
	if all {
		p.end, n = count, p.first+count*stride
	}
	var err error
	if p.bytes, err = f.MapFrom(writable, from-p.first, n); err != nil {
		return nil, err
	}
	s := &slots{stride: stride, count: count}
	s.parts.Store(&[]part{p})
	return s, nil
}

// box is what box.Place needs of the slots of a box, which begin with number from.
func (s *slots) box(l box.Layout, from int) (slot func(int) []byte, find func(int) error) {
	if p := (*s.parts.Load())[0]; p.end == s.count { // there is nothing to find
		return l.Flat(p.bytes[p.first+from*s.stride:]), nil
	}
	return func(i int) []byte { return s.slot(from + i) }, func(i int) error { return s.find(from + i) }
}

// slot is nil if find has not been called for it.
func (s *slots) slot(i int) []byte {
	before := 0
	for _, p := range *s.parts.Load() {
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
	parts := *s.parts.Load()
	last := parts[len(parts)-1]
	page := os.Getpagesize()
	p := part{end: min(max(2*last.end, i+1, leastPart), s.count)}
	if last.end == 0 {
		p.first = last.first
	} else {
		p.first = (len(last.bytes)-1)%page + 1
	}
	var err error
	if p.bytes, err = mem.Further(last.bytes, p.first+(p.end-last.end)*s.stride); err != nil {
		return rdma.NoMemory(err)
	}
	if last.end == 0 {
		s.parts.Store(&[]part{p})
		return mem.Unmap(last.bytes)
	}
	more := append(parts[:len(parts):len(parts)], p)
	s.parts.Store(&more)
	return nil
}

// unmap gives everything back; nobody may use any of it.
func (s *slots) unmap() error {
	var errs []error
	for _, p := range *s.parts.Swap(&[]part{}) {
		errs = append(errs, mem.Unmap(p.bytes))
	}
	return errors.Join(errs...)
}
