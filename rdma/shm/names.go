package shm

import "fmt"

// source names a box of another rank.
type source struct {
	sender int
	name   string
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
