package boxes

import "malt/rdma"

// CountLost brings what is overwritten up to date.
func (b *Boxes) CountLost() { b.countOverwritten(false) }

// countOverwritten brings Overwritten up to date with the boxes of the
// overwriting modes: what was published for this rank, less what it folded and
// what it may still fold, which is nothing when the boxes are to be closed. In
// lock-step and in queues nothing is overwritten.
func (b *Boxes) countOverwritten(closing bool) {
	if b.ch.mode.Rule.Boxes() != rdma.Newest || b.replay != nil { // it takes nothing before its time
		return
	}
	for i := range b.ch.sources {
		if !closing {
			b.counting.look(&b.ch.sources[i])
		}
		b.ch.sources[i].countOverwritten(closing)
	}
}

func (s *source) countOverwritten(closing bool) {
	lost := s.lost + s.inbox.Published() - s.folded
	if !closing && s.has && s.held.Seq != s.read {
		lost--
	}
	// The sender may have published between the two looks.
	if int64(lost-s.edge.Overwritten) > 0 {
		s.edge.Overwritten = lost
	}
}
