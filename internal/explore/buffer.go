package explore

import "fmt"

// With Options.Buffered a store waits in its thread's buffer, as on x86: the
// thread itself sees it at once, the others when it reaches memory, at some
// later turn and in the order of the thread's stores. Every other operation
// that writes is done with an empty buffer: it is a full fence.

// store is one that has not reached memory.
type store struct {
	p   *uint64
	off int
	v   uint64
}

// buffer carries out a load or store of a shared word by means of t's buffer;
// false if memory is to be used.
func (t *Thread) buffer(o *operation) bool {
	switch {
	case o.op == Store && t.x.shared[o.off/8]:
		t.stores = append(t.stores, store{o.p, o.off, o.a})
		return true
	case o.op == Load:
		for i := len(t.stores) - 1; i >= 0; i-- {
			if t.stores[i].p == o.p {
				t.result = t.stores[i].v
				return true
			}
		}
	}
	return false
}

// mustDrain tells whether t's operation has to wait until its stores have
// reached memory.
func (t *Thread) mustDrain() bool {
	switch t.op.op {
	case Load, Store, choose:
		return false
	}
	return len(t.stores) > 0
}

// drain lets t's oldest store reach memory.
func (t *Thread) drain() {
	s := t.stores[0]
	*s.p = s.v
	t.stores = t.stores[1:]
	if t.x.tracing {
		t.x.trace = append(t.x.trace, fmt.Sprintf("%-10s its %s reaches memory", t.name, t.x.describe(&operation{op: Store, off: s.off, a: s.v})))
	}
}
