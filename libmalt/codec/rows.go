package codec

import (
	"errors"
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/spvec"
)

// rows is what codecs of rows have in common.
type rows struct {
	m     *core.Member
	shape spvec.Shape

	// What the next message is to hold: rows that were named, and with search the
	// rows that are found to have changed, or not to be zero.
	named    []uint32
	disorder bool // named does not ascend
	search   bool
	found    []uint32

	// What Decode has found.
	us     []spvec.Update
	values [][]byte // rooms for those with skipped rows
	wholes [][]byte // rooms for Whole; mapped
	folder spvec.Folder
}

func (p *rows) Most() int { return p.shape.MaxBytes() }
func (p *rows) Row() int  { return p.shape.RowBytes() }

func (p *rows) Name(rows []int64, _ []int) error {
	if rows == nil {
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
			return say.Errorf(core.ErrInvalid, "row %d of %s: expected 0 to %d", r, p.m, p.shape.Rows-1)
		}
		if r <= last {
			disorder = true
		}
		p.named[before+i], last = uint32(r), r
	}
	p.disorder = disorder
	return nil
}

// due is the rows of the next message that are new, ascending. find appends those that
// are found.
func (p *rows) due(find func(rows []uint32) []uint32) []uint32 {
	if !p.search && !p.disorder {
		p.found, p.named = p.named, p.found[:0]
		return p.found
	}
	rows := p.found[:0]
	if p.search {
		rows = find(rows)
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
func (p *rows) unname() { p.named, p.disorder, p.search = p.named[:0], false, false }

// reserve makes sure of memory for a message of these rows; they are in the message after
// it where there is none.
func (p *rows) reserve(m Message, bytes int, rows []uint32) error {
	err := m.Out.Reserve(bytes)
	if err != nil {
		p.named = append(p.named[:0], rows...)
	}
	return err
}

func (p *rows) Close() error {
	var errs []error
	for _, b := range p.wholes {
		errs = append(errs, p.m.Job.T.Unmap(b))
	}
	p.wholes = nil
	return errors.Join(errs...)
}

// gradient sends the rows that are not zero.
type gradient struct{ rows }

func (p *gradient) Repeats() bool { return false }
func (p *gradient) Settled([]int) { p.unname() }
func (p *gradient) Widened()      {}
func (p *gradient) Renewed()      {}

func (p *gradient) Encode(slot []byte, m Message) (int, spvec.Kind, error) {
	all := p.search
	rows := p.due(func(rows []uint32) []uint32 { return spvec.NonZero(rows, p.shape, p.m.Data, p.shape.DenseFrom()) })
	if len(rows) >= p.shape.DenseFrom() {
		if err := p.reserve(m, p.shape.Bytes(), rows); err != nil {
			return 0, 0, err
		}
		return spvec.EncodeDense(slot, p.shape, p.m.Data, rows, all), spvec.Dense, nil
	}
	if err := p.reserve(m, p.shape.Room(len(rows), false), rows); err != nil {
		return 0, 0, err
	}
	n, kind := spvec.Encode(slot, p.shape, p.m.Data, rows, nil)
	return n, kind, nil
}
