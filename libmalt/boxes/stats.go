package boxes

import "malt/rdma"

// CountLost brings what is overwritten up to date.
func (b *Boxes) CountLost() { b.countOverwritten(false) }

// countOverwritten brings Overwritten up to date with the boxes of the
// overwriting modes: what was published for this rank, less what it folded and
// what it may still fold, which is nothing when the boxes are to be closed. In
// lock-step and in queues nothing is overwritten.
func (b *Boxes) countOverwritten(closing bool) {
	if b.ch.mode.Rule.Boxes() != rdma.Newest {
		return
	}
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		lost := src.lost + src.inbox.Published() - src.folded
		if !closing {
			if u, ok, err := src.inbox.Next(); ok && err == nil {
				src.held, src.has = u, true
			}
			if src.has {
				lost--
			}
		}
		// The sender may have published between the two looks.
		if int64(lost-src.edge.Overwritten) > 0 {
			src.edge.Overwritten = lost
		}
	}
}
