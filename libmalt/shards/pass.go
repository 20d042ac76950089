package shards

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/engine"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Renewed has all parts begin with the values that all have.
func (e *Engine) Renewed() {
	clear(e.Totals.Last)
	e.from = reduce.None
	if e.rows != nil {
		e.renewRows()
	} else if e.keeps() {
		reduce.Copy(e.sum, e.O.Array()[e.own().lo:])
	}
	for _, theirs := range e.theirs {
		clear(theirs)
	}
	for q := range e.shards {
		e.shards[q].way = nil
		e.shards[q].rows.ledger.Clear()
	}
}

// Heard has the keeper know how far the others have changed its part: until they went into a
// collective call, if one is, since Ranks was looked at before.
func (e *Engine) Heard(q int, b *engine.Inbox) {
	if q == e.O.Rank() {
		clock, _ := b.Clock() // a rank that has gone has no more
		e.core.more(b.From(), clock, e.Until(b.From()))
	}
}

// Take takes what has come for part q: the changes of a push are added to the sum, and its slot is
// free again; of the sum, which stays where it is unless it is in rows, what is in it is looked at.
func (e *Engine) Take(q int, b *engine.Inbox) {
	s, u := &e.shards[q], b.Held
	if u.Tag > e.Era {
		return // Settled comes back to it
	}
	own := q == e.O.Rank()
	if u.Tag == e.Era {
		reaches := e.reachesBytes()
		if own {
			reaches = 0
		}
		values, err := e.values(s, u, reaches)
		if err != nil {
			e.Fail(say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %v", e.O.Called("gather"), b.From(), err))
			return
		}
		switch {
		case own:
			e.Fail(e.core.add(b.From(), reach{Clock: u.Clock, Scatters: u.Age}))
			e.add(e.sum, values, b.From())
			if i := b.From() - len(e.shards); i >= 0 && len(e.theirs) > 0 {
				e.add(e.theirs[i], values, b.From())
			}
		default:
			e.reach = engine.AppendReaches(e.reach[:0], u.Data[len(values):])
			if e.Fail(e.core.take(q, e.reach)); e.rows != nil {
				e.takeRows(s, values)
			}
		}
		e.Edges[b.From()].Fold(int64(e.O.Clock()-min(e.O.Clock(), u.Clock)), len(values))
	}
	if own || e.rows != nil {
		b.Release(u.Seq)
		b.Held, b.Has = rdma.Update{}, false
	}
	if !own && e.core.seen(q) && s.way != nil {
		if e.rows != nil {
			clear(s.way)
		}
		s.way = nil
	}
}

// values are those of a message of a part, behind which there are so many bytes of what is in the sum.
func (e *Engine) values(s *shard, u rdma.Update, reaches int) ([]byte, error) {
	values := u.Data[:max(0, len(u.Data)-reaches)]
	switch {
	case len(u.Data) < reaches, e.rows == nil && len(values) != s.bytes():
		return nil, say.Errorf(rdma.ErrCorrupt, "%d bytes, expected %d", len(u.Data), s.bytes()+reaches)
	case e.rows != nil:
		return values, e.rows.update[0].Decode(spvec.Kind(u.Kind), values, s.rows.shape, 1, 0)
	}
	return values, nil
}

// add adds changes of a rank that have come to the sum, or to what is kept of that rank. NaN stays in it.
func (e *Engine) add(sum, changes []byte, from int) {
	if e.rows != nil {
		e.addRows(sum, from)
	} else {
		e.addAll(sum, changes, from)
	}
}

func (e *Engine) addAll(sum, changes []byte, from int) {
	e.srcs = append(e.srcs[:0], sum, changes)
	if reduce.FoldRuns(reduce.Sum, e.O.Runs(), e.own().lo, sum, e.srcs, nil, 0) == 1 {
		e.from = reduce.Earlier(e.from, from)
	}
}

// Inherit counts what ranks that are not in a call had pushed here as this rank's: the sums of it are
// of those in the call alone. A rank that keeps a part has to be in it.
func (e *Engine) Inherit(among []int) error {
	if len(among) == e.O.Size() {
		return nil
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for q := range e.shards {
		if slices.Index(among, q) < 0 {
			return e.lost(e.O.Transport().State(q), "allreduce")
		}
	}
	e.Pass() // what they pushed last
	for i, theirs := range e.theirs {
		if !slices.Contains(among, len(e.shards)+i) {
			e.addAll(e.Totals.Sum[e.own().lo:e.own().hi], theirs, len(e.shards)+i)
			clear(theirs)
		}
	}
	return e.Failed
}

// Send pushes to part q what has not been, and publishes its sum.
func (e *Engine) Send(q int) {
	s, own := &e.shards[q], q == e.O.Rank()
	last := e.Totals.Last[s.lo:s.hi]
	if len(s.via) > 1 && slices.ContainsFunc(s.via[:len(s.via)-1], e.Ranks.Left) {
		e.core.cut(q)
	}
	push, more := e.core.toPush(q, e.core.parts[q].cut && s.push.Acked(q) >= s.pushes)
	switch {
	case more:
		e.Fail(s.push.Advance(e.core.own.Clock))
		if e.rows != nil && e.rows.filter.Asks() {
			e.core.waits(q)
		}
	case push && own:
		e.addAll(e.sum, last, e.O.Rank())
		clear(last)
	case push:
		e.Fail(e.push(q, last))
	}
	if push {
		e.Fail(e.core.pushed(q))
	}
	if own {
		e.core.more(q, e.core.own.Clock, e.Until(q))
	}
	if e.core.due(q, e.Until) {
		e.Fail(e.publish(q))
		e.core.published(q)
	}
}

// push pushes changes to part q, and clears them.
func (e *Engine) push(q int, changes []byte) error {
	s := &e.shards[q]
	slot, err := s.push.Begin()
	if err != nil {
		return err
	}
	s.pushes++
	var kind spvec.Kind
	if e.rows != nil {
		s.moved, kind, err = e.pushRows(q, slot, changes)
	} else {
		s.way = slot[:reduce.Copy(slot, changes)]
		clear(changes)
	}
	if err != nil {
		return err
	}
	return e.commit(s.push, s.moved, s.moved, []int{q}, e.core.own, kind)
}

// publish publishes the sum of part q, and what is in it: its keeper as it has it, another rank as it
// has it from there.
func (e *Engine) publish(q int) error {
	s := &e.shards[q]
	slot, err := s.sum.Begin()
	if err != nil {
		return err
	}
	var n int
	var kind spvec.Kind
	if e.rows != nil {
		n, kind, err = e.sumRows(q, slot)
	} else {
		n = reduce.Copy(slot, e.view(q))
	}
	if err != nil {
		return err
	}
	values := n
	for _, has := range e.core.parts[q].has {
		has.Put(slot[n:])
		n += engine.ReachBytes
	}
	return e.commit(s.sum, n, values, s.below, reach{Clock: e.O.Clock()}, kind)
}

// commit sends what has been put into a slot: n bytes, of which the values are counted.
func (e *Engine) commit(out rdma.Outbox, n, values int, readers []int, at reach, kind spvec.Kind) error {
	for _, r := range readers {
		e.Sent(r, values)
	}
	return out.Commit(n, rdma.Stamp{Clock: at.Clock, Age: at.Scatters, Tag: e.Era, Kind: uint16(kind)}, nil)
}

// view is the sum of part q as this rank has it: before the first one of an era the values with
// which that began.
func (e *Engine) view(q int) []byte {
	s := &e.shards[q]
	if q == e.O.Rank() {
		return e.sum
	}
	if e.rows != nil {
		return e.rows.seen[s.lo:s.hi]
	}
	if b := &e.In[q][0]; b.Has && b.Held.Tag == e.Era {
		return b.Held.Data[:s.bytes()]
	}
	return e.Totals.Start[s.lo:s.hi]
}
