package libmalt

import (
	"errors"
	"slices"

	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/libmalt/spvec"
)

// sparse is what a sparse vector keeps beside its values.
//
// With sparseModel each row goes to each reader once in each of its values,
// however many messages were overwritten in between: a message holds the rows
// that changed since the message that the slowest of its readers has folded last,
// and a reader skips those that it has folded from another message. The ack words
// of the boxes say what was folded, so an update that is dropped unfolded is not
// released.
type sparse struct {
	kind  representation
	shape spvec.Shape

	// What the next message is to hold: rows that were named, and with search the
	// rows that are found to have changed, or not to be zero.
	named    []uint32
	disorder bool // named does not ascend
	search   bool
	found    []uint32

	// Of a model.
	shadow []byte // each row as it was sent last, or agreed upon; mapped
	ledger spvec.Ledger
	sent   []uint64 // by rank, in queues: the last message meant for it

	// What Begin has found.
	us     []spvec.Update
	values [][]byte // rooms for those with skipped rows
	wholes [][]byte // rooms for Whole; mapped
	folder spvec.Folder
}

// shapeOf is how the one array of a sparse vector lies in rows.
func shapeOf(arrays []Array) (spvec.Shape, error) {
	if len(arrays) != 1 {
		return spvec.Shape{}, say.Errorf(ErrInvalid, "a sparse vector of %d arrays: one is expected", len(arrays)).Try("Make a vector of each. The first axis is that of the rows.")
	}
	a := arrays[0]
	width := max(a.Row, 1)
	if a.Row < 0 || a.Count%width != 0 {
		return spvec.Shape{}, say.Errorf(ErrInvalid, "%d elements in rows of %d: a number that divides them is expected", a.Count, a.Row)
	}
	s := spvec.Shape{Rows: a.Count / width, Width: width, Elem: a.DType.Size()}
	return s, say.As(ErrInvalid, s.Check())
}

// newSparse prepares the sender's side. It maps memory: settle before use, drop
// at the end.
func (s *Segment) newSparse(kind representation, shape spvec.Shape) error {
	p := &sparse{kind: kind, shape: shape}
	if kind == sparseModel {
		shadow, err := s.w.t.Map(max(shape.Bytes(), 1))
		if err != nil {
			return err
		}
		p.shadow, p.sent = shadow, make([]uint64, s.w.size)
	}
	s.sparse = p
	return nil
}

// model tells whether s is a sparse model.
func (s *Segment) model() bool { return s.sparse != nil && s.sparse.kind == sparseModel }

// most is the longest payload.
func (s *Segment) most() int {
	if s.sparse != nil {
		return s.sparse.shape.MaxBytes()
	}
	return len(s.data)
}

// settle says that all ranks have the present values.
func (s *Segment) settle() {
	p := s.sparse
	if p == nil {
		return
	}
	p.unname()
	if p.kind == sparseModel {
		copy(p.shadow, s.data)
		p.ledger.Clear()
	}
}

// forget begins anew with boxes in which nothing was sent. What was not read in
// the old ones counts as read.
func (p *sparse) forget() {
	if p != nil && p.kind == sparseModel {
		p.ledger.Clear()
		clear(p.sent)
	}
}

// unmap gives the memory back.
func (s *Segment) unmapSparse() error {
	p := s.sparse
	if p == nil {
		return nil
	}
	var errs []error
	for _, b := range append(p.wholes, p.shadow) {
		if b != nil {
			errs = append(errs, s.w.t.Unmap(b))
		}
	}
	p.wholes, p.shadow = nil, nil
	return errors.Join(errs...)
}

// nameRows puts rows into the next message of a scatter; nil: those that are found.
// It refuses what the caller has named wrongly.
func (s *Segment) nameRows(rows []int64) error {
	p := s.sparse
	switch {
	case p == nil && rows != nil:
		return say.Errorf(ErrInvalid, "rows of %s are named, which is not sparse and is sent as a whole", s).Try("Make it with sparse=model or sparse=gradient.")
	case p == nil:
		return nil
	case rows == nil:
		p.search = true
		return nil
	}
	before, last := len(p.named), int64(-1)
	if before > 0 {
		last = int64(p.named[before-1])
	}
	p.named = slices.Grow(p.named, len(rows))[:before+len(rows)]
	disorder := p.disorder
	for i, r := range rows {
		if r < 0 || r >= int64(p.shape.Rows) {
			p.named = p.named[:before]
			return say.Errorf(ErrInvalid, "row %d of %s: 0 to %d are expected", r, s, p.shape.Rows-1)
		}
		if r <= last {
			disorder = true
		}
		p.named[before+i], last = uint32(r), r
	}
	p.disorder = disorder
	return nil
}

// take is the rows of the next message that are new, ascending.
func (p *sparse) take(data []byte) []uint32 {
	if !p.search && !p.disorder {
		p.found, p.named = p.named, p.found[:0]
		return p.found
	}
	rows := p.found[:0]
	switch {
	case !p.search:
	case p.kind == sparseModel:
		rows = spvec.Changed(rows, p.shape, data, p.shadow)
	default:
		rows = spvec.NonZero(rows, p.shape, data, p.shape.DenseFrom())
	}
	if len(p.named) > 0 {
		rows = append(rows, p.named...)
		slices.Sort(rows)
		rows = slices.Compact(rows)
	}
	p.found = rows
	p.unname()
	return rows
}

// unname forgets what was to be in the next message.
func (p *sparse) unname() { p.named, p.disorder, p.search = p.named[:0], false, false }

// encode writes the next message, for the ranks in to, to slot. Where there is no
// memory for it, the rows are in the message after it.
func (s *Segment) encode(slot []byte, to []int) (int, spvec.Kind, error) {
	p := s.sparse
	all := p.search
	rows := p.take(s.data)
	reserve := func(bytes int) error {
		err := s.ch.out.Reserve(bytes)
		if err != nil {
			p.named = append(p.named[:0], rows...)
		}
		return err
	}
	if p.kind == sparseGradient {
		if len(rows) >= p.shape.DenseFrom() {
			if err := reserve(p.shape.Bytes()); err != nil {
				return 0, 0, err
			}
			return spvec.EncodeDense(slot, p.shape, s.data, rows, all), spvec.Dense, nil
		}
		if err := reserve(p.shape.Room(len(rows), false)); err != nil {
			return 0, 0, err
		}
		n, kind := spvec.Encode(slot, p.shape, s.data, rows, nil)
		return n, kind, nil
	}
	seq := s.head.Load() + 1
	p.ledger.Drop(s.readBy(s.ch.receivers, seq))
	p.ledger.Add(rows, seq)
	if to == nil {
		to = s.ch.receivers
	}
	due, ages := p.ledger.Since(seq, s.readBy(to, seq))
	if err := reserve(p.shape.Room(len(due), ages != nil)); err != nil {
		return 0, 0, err
	}
	if s.mode.consistency.Kind == consistency.NotifyAck {
		for _, r := range to {
			p.sent[r] = seq
		}
	}
	if ages == nil && len(due) == len(rows) {
		n, kind := spvec.EncodeNew(slot, p.shape, s.data, p.shadow, rows)
		return n, kind, nil
	}
	spvec.Remember(p.shape, p.shadow, s.data, rows)
	n, kind := spvec.Encode(slot, p.shape, s.data, due, ages)
	return n, kind, nil
}

// readBy is the last message that all of readers have folded, or in queues, where
// nothing is overwritten, will have before they get message seq. Who has died or
// left reads no more.
func (s *Segment) readBy(readers []int, seq uint64) uint64 {
	least := seq
	for _, r := range readers {
		if s.mode.consistency.Kind == consistency.NotifyAck {
			least = min(least, s.sparse.sent[r])
		} else if acked := s.ch.out.Acked(r); acked < least && s.w.t.State(r) == nil {
			least = acked
		}
	}
	return least
}

// Row is the length in bytes of a row of a sparse vector; 0: it is not sparse.
func (v *Vector) Row() int {
	if v.sparse == nil {
		return 0
	}
	return v.sparse.shape.RowBytes()
}
