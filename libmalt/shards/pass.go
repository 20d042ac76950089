package shards

import (
	"cmp"
	"encoding/binary"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Settled begins an era.
func (e *Engine) Settled(summed []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.srcs = e.srcs[:0]
	if len(summed) > 0 {
		e.srcs = append(e.srcs, e.o.Array())
	}
	e.totals.Renew(e.o.Array(), e.srcs)
	clear(e.totals.Last)
	e.era, e.used = e.o.Calls(), true
	e.core.renew(e.o.Clock())
	e.from = reduce.None
	if e.rows != nil {
		e.renewRows()
	} else if e.keeps() {
		reduce.Copy(e.sum, e.o.Array()[e.own().lo:])
	}
	for q := range e.shards {
		s := &e.shards[q]
		s.way = nil
		s.rows.ledger.Clear()
		for i := range s.in {
			if b := &s.in[i]; b.has && b.held.Tag == e.era { // its sender was faster
				e.take(q, b)
			}
		}
	}
	e.pass()
}

// poll is the pass of the goroutine.
func (e *Engine) poll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.used && e.pass() {
		e.o.Transport().Wake()
	}
	return false
}

// pass takes what has come, and sends what is due. It tells whether there was something.
func (e *Engine) pass() (took bool) {
	e.ranks.Look(e.o)
	for q := range e.shards {
		s := &e.shards[q]
		for i := range s.in {
			b := &s.in[i]
			u, ok, err := b.Next()
			e.fail(err)
			if ok && err == nil {
				took, b.held, b.has = true, u, true
				e.take(q, b)
			}
			if q == e.o.Rank() {
				clock, _ := b.Clock() // a rank that has gone has no more
				e.core.more(b.From(), clock)
			}
		}
		if e.failed == nil {
			e.send(q)
		}
	}
	return took || e.failed != nil
}

func (e *Engine) fail(err error) { e.failed = cmp.Or(e.failed, err) }

// take takes what has come for part q: the changes of a push are added to the sum, and its slot is
// free again; of the sum, which stays where it is unless it is in rows, what is in it is looked at.
func (e *Engine) take(q int, b *inbox) {
	s, u := &e.shards[q], b.held
	if u.Tag > e.era {
		return // see Settled
	}
	own := q == e.o.Rank()
	if u.Tag == e.era {
		reaches := e.reachesBytes()
		if own {
			reaches = 0
		}
		values, err := e.values(s, u, reaches)
		if err != nil {
			e.fail(say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %v", e.o.Called("gather"), b.From(), err))
			return
		}
		switch {
		case own:
			e.fail(e.core.add(b.From(), reach{u.Clock, u.Age}))
			if e.rows != nil {
				e.addRows(b.From())
			} else {
				e.add(values, b.From())
			}
		default:
			e.reach = e.reach[:0]
			for at := u.Data[len(values):]; len(at) > 0; at = at[reachBytes:] {
				e.reach = append(e.reach, reach{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])})
			}
			if e.fail(e.core.take(q, e.reach)); e.rows != nil {
				e.takeRows(s, values)
			}
		}
		e.edges[b.From()].Fold(int64(e.o.Clock()-min(e.o.Clock(), u.Clock)), len(values))
	}
	if own || e.rows != nil {
		b.Release(u.Seq)
		b.held, b.has = rdma.Update{}, false
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

// add adds changes of a rank to the sum. NaN stays in it.
func (e *Engine) add(changes []byte, from int) {
	e.srcs = append(e.srcs[:0], e.sum, changes)
	if reduce.FoldRuns(reduce.Sum, e.o.Runs(), e.own().lo, e.sum, e.srcs, nil, 0) == 1 {
		e.from = reduce.Earlier(e.from, from)
	}
}

// send pushes to part q what has not been, and publishes its sum.
func (e *Engine) send(q int) {
	s, own := &e.shards[q], q == e.o.Rank()
	last := e.totals.Last[s.lo:s.hi]
	push, more := e.core.toPush(q)
	switch {
	case more:
		e.fail(s.push.Advance(e.core.own.clock))
		if e.rows != nil && e.rows.filter.Asks() {
			e.core.waits(q)
		}
	case push && own:
		e.add(last, e.o.Rank())
		clear(last)
	case push:
		e.fail(e.push(q, last))
	}
	if push {
		e.fail(e.core.pushed(q))
	}
	if e.core.due(q, e.ranks.Of) {
		e.fail(e.publish(q))
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
		binary.LittleEndian.PutUint64(slot[n:], has.clock)
		binary.LittleEndian.PutUint64(slot[n+8:], has.scatters)
		n += reachBytes
	}
	return e.commit(s.sum, n, values, s.below, reach{clock: e.o.Clock()}, kind)
}

// commit sends what has been put into a slot: n bytes, of which the values are counted.
func (e *Engine) commit(out rdma.Outbox, n, values int, readers []int, at reach, kind spvec.Kind) error {
	for _, r := range readers {
		e.edges[r].SentMessages++
		e.edges[r].SentBytes += uint64(values)
	}
	return out.Commit(n, rdma.Stamp{Clock: at.clock, Age: at.scatters, Tag: e.era, Kind: uint16(kind)}, nil)
}

// view is the sum of part q as this rank has it: before the first one of an era the values with
// which that began.
func (e *Engine) view(q int) []byte {
	s := &e.shards[q]
	if q == e.o.Rank() {
		return e.sum
	}
	if e.rows != nil {
		return e.rows.seen[s.lo:s.hi]
	}
	if b := &s.in[0]; b.has && b.held.Tag == e.era {
		return b.held.Data[:s.bytes()]
	}
	return e.totals.Start[s.lo:s.hi]
}
