package shm

import (
	"fmt"
	"slices"
)

// source names a box of another rank.
type source struct {
	sender int
	name   string
}

// checkRanks fails unless each is a rank, named once.
func (t *transport) checkRanks(what string, ranks []int) error {
	for i, rank := range ranks {
		if rank < 0 || rank >= t.Size() || slices.Contains(ranks[:i], rank) {
			return fmt.Errorf("%s %v: each must be a rank below %d, named once", what, ranks, t.Size())
		}
	}
	return nil
}

// takeName makes name that of a box of ours; false while another has it.
func (r *rank) takeName(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outs[name] {
		return false
	}
	r.outs[name] = true
	return true
}

func (r *rank) freeName(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outs, name)
}

// takeSources makes us a reader of these boxes, of all or none.
func (r *rank) takeSources(name string, senders []int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range senders {
		if r.ins[source{s, name}] {
			return fmt.Errorf("this rank has subscribed to it at rank %d already; close that Inbox first", s)
		}
	}
	for _, s := range senders {
		r.ins[source{s, name}] = true
	}
	return nil
}

func (r *rank) freeSources(name string, senders []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range senders {
		delete(r.ins, source{s, name})
	}
}
