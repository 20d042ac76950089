package libmalt

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/auto"
)

// keep collects every rank's bytes.
type keep struct{ parts [][]byte }

func (k *keep) Begin(c *core.Collective) error {
	k.parts = make([][]byte, c.Job.Size)
	return nil
}

// room is memory in the heap, where the kernel would kill for what is not there.
func room(rank int, total uint64) ([]byte, error) {
	if total > core.ChunkBytes {
		if free, limit := auto.FreeMemory(); total > free {
			return nil, say.Errorf(ErrNoMemory, "rank %d sends %d bytes, and %d are free within %s", rank, total, free, limit).More("out-of-memory")
		}
	}
	return make([]byte, total), nil
}

func (k *keep) Expect(rank int, total uint64) (err error) {
	k.parts[rank], err = room(rank, total)
	return err
}

func (k *keep) Chunk(c *core.Collective, rank, off int, b []byte) bool {
	reduce.Copy(k.parts[rank][off:], b)
	c.Taken(rank, len(b))
	return true
}

func (k *keep) Finish(c *core.Collective) { k.parts[c.Job.Rank] = append([]byte{}, c.Data...) }

func (k *keep) Result() [][]byte { return k.parts }

func (k *keep) Give(c *core.Collective, ranks []int, lengths []uint64) (_ [][]byte, err error) {
	k.parts = make([][]byte, c.Job.Size)
	for _, r := range ranks {
		if len(lengths) != len(k.parts) {
			return nil, say.Errorf(rdma.ErrCorrupt, "the result of %s has %d parts, expected %d", c.Name(), len(lengths), len(k.parts))
		}
		if k.parts[r], err = room(r, lengths[r]); err != nil {
			return nil, err
		}
	}
	return slices.Clone(k.parts), nil
}

// combine folds the ranks' data chunk by chunk, in the order of ranks, so that
// all ranks compute the same bits. dst is written when all is there: at an
// error it is as it was.
type combine struct {
	op      reduce.Op
	runs    []reduce.Run
	dst     []byte
	scratch []byte   // the result so far
	chunks  [][]byte // by rank, those that wait for the others
	terms   [][]byte // of the view
	from    int      // which of them has brought NaN or infinity; None, Unknown
	way     way      // of the vector that it is about; nil: of none
}

func (m *combine) Begin(c *core.Collective) (err error) {
	if m.way != nil {
		if err := m.way.Inherit(c.Ranks()); err != nil {
			return err
		}
	}
	m.chunks, m.scratch = make([][]byte, c.Job.Size), nil
	if len(c.Ranks()) > 1 {
		m.scratch, err = c.Job.Scratch(len(m.dst))
	}
	return err
}

func (m *combine) Expect(rank int, total uint64) error {
	return expectBytes(rank, total, len(m.dst))
}

func expectBytes(rank int, total uint64, want int) error {
	if total != uint64(want) {
		return say.Errorf(rdma.ErrCorrupt, "rank %d sends %d bytes, expected %d", rank, total, want)
	}
	return nil
}

func (m *combine) Chunk(c *core.Collective, rank, off int, b []byte) bool {
	m.chunks[rank] = b
	for _, r := range c.Ranks() {
		if r != c.Job.Rank && (m.chunks[r] == nil || c.Got(r) != off) {
			return false
		}
	}
	m.chunks[c.Job.Rank] = c.Data[off : off+len(b)]
	m.terms = m.terms[:0]
	for _, r := range c.Ranks() {
		m.terms = append(m.terms, m.chunks[r])
	}
	m.from = reduce.Earlier(m.from, reduce.FoldRuns(m.op, m.runs, off, m.scratch[off:off+len(b)], m.terms, nil, 0))
	for _, r := range c.Ranks() {
		m.chunks[r] = nil
		if r != c.Job.Rank {
			c.Taken(r, len(b))
		}
	}
	return true
}

func (m *combine) Finish(*core.Collective) {
	if m.scratch != nil {
		for _, r := range m.runs { // what lies between them was not folded
			reduce.Copy(m.dst[r.Off:r.Off+r.Bytes], m.scratch[r.Off:])
		}
	}
}

func (m *combine) Result() [][]byte { return one(m.scratch) }

func (m *combine) Give(c *core.Collective, _ []int, lengths []uint64) (_ [][]byte, err error) {
	if m.scratch, err = given(c, len(m.dst), lengths); err != nil {
		return nil, err
	}
	return one(m.scratch), nil
}

// one is the pieces of a result that is in scratch memory.
func one(scratch []byte) [][]byte {
	if scratch == nil {
		return nil
	}
	return [][]byte{scratch}
}

// given is scratch memory for a result that another rank gives; nil: it has none.
func given(c *core.Collective, want int, lengths []uint64) ([]byte, error) {
	switch {
	case len(lengths) == 0:
		return nil, nil
	case len(lengths) > 1 || lengths[0] != uint64(want):
		return nil, say.Errorf(rdma.ErrCorrupt, "the result of %s has the lengths %d, expected %d", c.Name(), lengths, want)
	}
	return c.Job.Scratch(want)
}

// fill copies root's data, or of an object being made those of the lowest rank that takes
// part. dst is written when all is there, unless nobody has it yet.
type fill struct {
	root         int
	fresh        bool // dst is that of an object being made
	has          bool // this rank has values of its own, and keeps them
	dst, scratch []byte
}

func (f *fill) Begin(c *core.Collective) (err error) {
	if f.fresh {
		f.root = c.Ranks()[0]
	}
	c.Data, f.scratch = nil, nil
	switch {
	case c.Job.Rank == f.root:
		if c.Data = f.dst; c.Job.Settles() { // others may ask for it when dst has changed
			if f.scratch, err = c.Job.Scratch(len(f.dst)); err == nil {
				reduce.Copy(f.scratch, f.dst)
			}
		}
	case f.fresh && !c.Job.Survives():
		f.scratch = f.dst
	default: // the root may die before all is there
		f.scratch, err = c.Job.Scratch(len(f.dst))
	}
	return err
}

func (f *fill) Expect(rank int, total uint64) error {
	want := 0
	if rank == f.root {
		want = len(f.dst)
	}
	return expectBytes(rank, total, want)
}

func (f *fill) Chunk(c *core.Collective, rank, off int, b []byte) bool {
	reduce.Copy(f.scratch[off:], b)
	c.Taken(rank, len(b))
	return true
}

func (f *fill) Finish(c *core.Collective) {
	if slices.Contains(c.Ranks(), f.root) && c.Job.Rank != f.root && !f.has && (!f.fresh || c.Job.Survives()) {
		reduce.Copy(f.dst, f.scratch)
	}
}

func (f *fill) Result() [][]byte { return one(f.scratch) }

func (f *fill) Give(c *core.Collective, ranks []int, lengths []uint64) (_ [][]byte, err error) {
	if f.fresh {
		f.root = ranks[0]
	}
	if f.scratch, err = given(c, len(f.dst), lengths); err != nil {
		return nil, err
	}
	return one(f.scratch), nil
}
