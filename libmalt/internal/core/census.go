package core

import "malt/rdma"

// census is what the transport has said of all ranks when it had counted that many changes,
// none of them a death that ends the job.
type census struct {
	at   uint64
	live []bool // by rank
}

// counted is the census of now; nil: nothing counts, or a death ends the job. A wait asks for
// it at every look, so it is one load where nothing has changed. A change while the states
// are looked at is counted after, and makes the next one.
func (m *Marks) counted() *census {
	if m.counts == nil {
		return nil
	}
	at := m.counts.Changes()
	if at == 0 {
		return nil
	}
	c := m.last.Load()
	if c != nil && c.at == at {
		return c
	}
	c = &census{at: at, live: make([]bool, m.t.Size())}
	for r := range c.live {
		state := m.t.State(r)
		if DeathIn(state) != nil && !LeftOut(m.t, r) {
			return nil
		}
		c.live[r] = state == nil
	}
	m.last.Store(c)
	return c
}

// live tells that rank takes part; if not, it may.
func (m *Marks) live(rank int) bool {
	c := m.counted()
	return c != nil && c.live[rank]
}

// death is Death of the transport.
func (m *Marks) death() *rdma.PeerError {
	if m.counted() != nil {
		return nil
	}
	return Death(m.t)
}
