package shards

import (
	"malt/libmalt/filter"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// rows is for vectors of which rows are sent: a push has the rows that have changed, and a sum the rows that
// one of its readers has not taken in their present values. A filter holds some of them back, until they have
// changed more. So what a message has is as in
//
//	worker   totals.Last  what has changed, and was not pushed or is held back    sent  what is on its way
//	keeper   sum          the values and all changes that have come               sent  what its readers know
//
// At a worker all rows of sent are zero while nothing is on its way.
type rows struct {
	filter filter.Filter
	seen   []byte // the sum of each part, as this rank knows it; its own part of the sum
	sent   []byte

	found  []uint32
	far    []float64
	update [1]spvec.Update // that has come
	folder spvec.Folder
}

// partRows is that of a part.
type partRows struct {
	shape  spvec.Shape
	seq    uint64       // of the last sum that this rank has published
	ledger spvec.Ledger // which of its rows a reader may not have taken
}

// renewRows says that all ranks have the values of this one.
func (e *Engine) renewRows() {
	reduce.Copy(e.rows.seen, e.O.Array())
	if clear(e.rows.sent); e.keeps() {
		reduce.Copy(e.rows.sent[e.own().lo:], e.sum)
	}
}

// due are the rows of now that are to be sent at clock.
func (p *rows) due(s spvec.Shape, now, sent []byte, clock uint64, late bool) []uint32 {
	p.found = spvec.Changed(p.found[:0], s, now, sent)
	if p.filter.On() && clock != closed {
		p.far = spvec.Far(p.far, p.filter.Measure(), s, now, sent, p.found)
		p.found = p.filter.Due(p.found, p.far, s, clock, late)
	}
	spvec.Remember(s, sent, now, p.found)
	return p.found
}

// encode puts rows of data into slot, or all of it where that is no longer.
func encode(out rdma.Outbox, slot []byte, s spvec.Shape, data []byte, rows []uint32, more int) (int, spvec.Kind, error) {
	n := min(s.Room(len(rows), false), s.Bytes())
	if err := out.Reserve(n + more); err != nil {
		return 0, 0, err
	}
	if n == s.Bytes() {
		return reduce.Copy(slot, data), spvec.Dense, nil
	}
	n, kind := spvec.Encode(slot, s, data, rows, nil)
	return n, kind, nil
}

// pushRows puts the rows of changes that are due into slot, and clears them. A rank that closes the vector
// holds nothing back.
func (e *Engine) pushRows(q int, slot, changes []byte) (int, spvec.Kind, error) {
	s := &e.shards[q]
	clear(s.way) // of a rank that has closed the vector
	s.way = e.rows.sent[s.lo:s.hi]
	due := e.rows.due(s.rows.shape, changes, s.way, e.core.own.Clock, e.core.parts[q].late)
	size := s.rows.shape.RowBytes()
	for _, row := range due {
		clear(changes[int(row)*size:][:size])
	}
	return encode(s.push, slot, s.rows.shape, s.way, due, 0)
}

// addRows adds the changes of a rank that have come to a sum.
func (e *Engine) addRows(sum []byte, from int) {
	e.rows.update[0].Rank = from
	brought := e.rows.folder.Fold(reduce.Sum, spvec.Keep, e.own().rows.shape, sum, 0, 1, e.rows.update[:])
	e.from = reduce.Earlier(e.from, brought)
}

// sumRows puts the rows of the sum of part q into slot that a reader has not taken. Its keeper has the filter, and
// another rank passes on what comes from it.
func (e *Engine) sumRows(q int, slot []byte) (int, spvec.Kind, error) {
	s, data := &e.shards[q], e.view(q)
	r := &s.rows
	r.seq++
	taken, late := r.seq, false
	for _, below := range s.below {
		if e.O.Lost(below) {
			continue
		}
		at := s.sum.Acked(below)
		taken = min(taken, at)
		late = late || at < r.seq-1 && e.Ranks.Of(below)
	}
	r.ledger.Drop(taken)
	if q == e.O.Rank() {
		now := data
		data = e.rows.sent[s.lo:s.hi]
		r.ledger.Add(e.rows.due(r.shape, now, data, e.core.newest(q), late), r.seq)
	}
	due, _ := r.ledger.Since(r.seq, taken)
	return encode(s.sum, slot, r.shape, data, due, e.reachesBytes())
}

// takeRows takes a sum of a part that has come: these values, or rows of them.
func (e *Engine) takeRows(s *shard, values []byte) {
	u, seen := &e.rows.update[0], e.rows.seen[s.lo:s.hi]
	if len(s.below) > 0 {
		rows := u.Index
		if u.All {
			e.rows.found = spvec.Changed(e.rows.found[:0], s.rows.shape, values, seen)
			rows = e.rows.found
		}
		s.rows.ledger.Add(rows, s.rows.seq+1)
	}
	u.Expand(seen, s.rows.shape)
}
