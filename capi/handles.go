package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// kind is what a handle stands for.
type kind uint64

const (
	kindVector kind = 1 + iota
	kindSegment
	kindGraph
	kindObject // a vector or a segment: what a handle may be, not what it is
)

func (k kind) String() string {
	switch k {
	case kindVector:
		return "vector"
	case kindSegment:
		return "segment"
	case kindGraph:
		return "graph"
	case kindObject:
		return "vector or segment"
	}
	return "unknown object"
}

// A handle is
//
//	63      56 55            32 31             0
//	┌─────────┬────────────────┬────────────────┐
//	│  kind   │  reuse count   │  slot          │
//	└─────────┴────────────────┴────────────────┘
//
// Kinds start at 1, so 0 is no handle. The reuse count tells a closed handle
// from the next one in the same slot; a slot whose count is used up is never
// used again.
const (
	slotBits  = 32
	reuseBits = 24
	kindShift = slotBits + reuseBits
	maxReuse  = 1<<reuseBits - 1
)

// table maps handles to objects. get takes no lock and writes no shared word;
// add and remove, which are rare, take turns.
type table struct {
	slots atomic.Pointer[[]*slot] // grows by being replaced; a slot never moves

	mu   sync.Mutex
	free []uint32
}

type slot struct {
	entry atomic.Pointer[entry] // nil: nothing open here
	reuse uint64                // guarded by table.mu
}

// entry never changes once it is in a slot, so a reader that has loaded the
// pointer sees the handle and the object that belong together. A call that is
// under way when its handle is closed keeps the object from the collector.
type entry struct {
	handle uint64
	object any
}

func (t *table) add(k kind, object any) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		t.grow()
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	s := (*t.slots.Load())[i]
	h := uint64(k)<<kindShift | s.reuse<<slotBits | uint64(i)
	s.entry.Store(&entry{h, object})
	return h
}

// grow doubles the slots. Called with mu held.
func (t *table) grow() {
	var old []*slot
	if p := t.slots.Load(); p != nil {
		old = *p
	}
	n := max(16, 2*len(old))
	slots := make([]*slot, n)
	copy(slots, old)
	for i := n - 1; i >= len(old); i-- { // the lowest comes off the free list first
		slots[i] = new(slot)
		t.free = append(t.free, uint32(i))
	}
	t.slots.Store(&slots)
}

// entryOf returns the slot and the live entry of h, or nil.
func (t *table) entryOf(h uint64) (*slot, *entry) {
	p := t.slots.Load()
	if i := h & (1<<slotBits - 1); p != nil && i < uint64(len(*p)) {
		s := (*p)[i]
		if e := s.entry.Load(); e != nil && e.handle == h {
			return s, e
		}
	}
	return nil, nil
}

// get returns the object of h if h is open and of kind k.
func (t *table) get(h uint64, k kind) (any, error) {
	if kind(h>>kindShift) == k {
		if _, e := t.entryOf(h); e != nil {
			return e.object, nil
		}
	}
	return nil, &handleError{h, k}
}

// remove closes h. It tells whether h was open: of several that remove the same
// handle one gets true.
func (t *table) remove(h uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, e := t.entryOf(h)
	if e == nil {
		return false
	}
	s.entry.Store(nil)
	if s.reuse++; s.reuse <= maxReuse {
		t.free = append(t.free, uint32(h))
	}
	return true
}

// replace puts another object in the place of that of h, if that is open.
func (t *table) replace(h uint64, object any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, e := t.entryOf(h); e != nil {
		s.entry.Store(&entry{h, object})
	}
}

// each calls f with every open handle and its object.
func (t *table) each(f func(h uint64, object any)) {
	p := t.slots.Load()
	if p == nil {
		return
	}
	for _, s := range *p {
		if e := s.entry.Load(); e != nil {
			f(e.handle, e.object)
		}
	}
}

// handleError says why a handle was refused.
type handleError struct {
	handle uint64
	want   kind
}

func (e *handleError) Error() string {
	switch is := kind(e.handle >> kindShift); {
	case e.handle == 0:
		return fmt.Sprintf("null handle: expected a %v", e.want)
	case is == e.want:
		return fmt.Sprintf("handle %#x: no %v has this handle; it was closed, or never existed", e.handle, e.want)
	case is >= kindVector && is <= kindGraph:
		return fmt.Sprintf("handle %#x is of a %v: expected a %v", e.handle, is, e.want)
	default:
		return fmt.Sprintf("%#x is not a handle: expected a %v", e.handle, e.want)
	}
}
