package shm

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
