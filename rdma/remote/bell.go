package remote

import "malt/rdma/internal/bell"

// ownBell is the doorbell of a rank that has no near ones.
type ownBell struct {
	*bell.Bell
	id  uint64
	set *bell.Set
}

var _ bell.Doorbell = ownBell{}

func newBell(s *bell.Set) ownBell {
	b, id := s.Add(0)
	return ownBell{b, id, s}
}

func (b ownBell) BellID() uint64     { return b.id }
func (b ownBell) Wake()              { b.Ring() }
func (b ownBell) RingBell(id uint64) { b.set.Ring(id) }
func (b ownBell) RingBells()         { b.set.RingAll() }
